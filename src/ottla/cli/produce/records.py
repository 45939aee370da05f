"""What readers make of input: columns, which are sent with one call, or records one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, Protocol

from ottla.cli.produce.input import BadInput, Lines

Headers = tuple[tuple[str, bytes | None], ...]
Bytes = bytes | None


class Columns(NamedTuple):
    """Records that have values, and keys and headers where these are given, and nothing else."""

    values: Sequence[Bytes]
    keys: Sequence[Bytes] | None = None
    headers: Sequence[Headers] | None = None

    def each(self) -> Iterator[tuple[Bytes, Bytes, Headers]]:
        """(value, key, headers) of each record."""
        count = len(self.values)
        keys = repeat(None, count) if self.keys is None else self.keys
        headers = repeat((), count) if self.headers is None else self.headers
        return zip(self.values, keys, headers, strict=True)

    def rows(self) -> list[Row]:
        """The records one by one."""
        return [Row(*each) for each in self.each()]


class Row(NamedTuple):
    """One record, with what its input says of it."""

    value: Bytes
    key: Bytes = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    topic: str | None = None
    line: int | None = None
    """Which line it comes from, where lines and records are not one to one."""


class Reader(Protocol):
    """Makes records of input. At malformed input it returns the records before, and sets `failure`."""

    failure: BadInput | None

    def read(self, lines: Lines) -> Columns | list[Row]: ...
