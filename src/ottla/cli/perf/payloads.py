"""The values that `ottla perf produce` sends: random letters, the parts of a file, or counted numbers.

They are made before the clock starts, in a pool that is sent again and again. The pool is much larger than a batch, so that
compression finds no more repetition than if each value were random.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import click

POOL_BYTES = 8 * 1024 * 1024
POOL_VALUES_MAX = 50_000
_LETTERS = bytes(ord("A") + number % 26 for number in range(256))


class Payloads(Protocol):
    """A source of values."""

    @property
    def average_bytes(self) -> int:
        """About how long a value is."""
        ...

    def take(self, count: int) -> Sequence[bytes]:
        """The next values: at least one, at most `count`."""
        ...


class Pool:
    """Values that are taken in turn, from the first again after the last."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = values
        self._next = 0
        self.average_bytes = sum(map(len, values)) // len(values)

    def take(self, count: int) -> Sequence[bytes]:
        start = self._next
        taken = self._values[start : start + count]
        self._next = (start + len(taken)) % len(self._values)
        return taken


class Counted:
    """Numbers from 0 on, as text."""

    average_bytes = 8

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> Sequence[bytes]:
        first = self._next
        self._next += count
        return [b"%d" % number for number in range(first, first + count)]


def random_payloads(size: int, count: int) -> Pool:
    """Values of `size` random capital letters, for sending `count` records. The same in every run, as Kafka's."""
    chance = random.Random(0)
    values = min(count, POOL_VALUES_MAX, max(1, POOL_BYTES // size))
    letters = chance.randbytes(values * size).translate(_LETTERS)
    return Pool([letters[start : start + size] for start in range(0, len(letters), size)])


def file_payloads(path: str, delimiter: str, count: int) -> tuple[Pool, int]:
    """Values chosen at random from the parts of a file, and how many parts there are.

    `delimiter` is a regular expression, as in Kafka's tool. Empty parts at the end are left out, and bytes stay as they are.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise click.UsageError(f"--payload-file {path} cannot be read: {error.strerror}") from None
    if not content:
        raise click.UsageError(f"--payload-file {path} is empty: write payloads into it, one a line")
    try:
        parts = re.split(delimiter.encode(), content)
    except re.error as error:
        raise click.UsageError(f"--payload-delimiter {delimiter!r} is not a regular expression: {error}") from None
    while parts and not parts[-1]:
        parts.pop()
    if not parts:
        raise click.UsageError(f"--payload-file {path} has only delimiters: write payloads between them")
    chosen = random.Random(0).choices(parts, k=min(count, POOL_VALUES_MAX))
    return Pool(chosen), len(parts)
