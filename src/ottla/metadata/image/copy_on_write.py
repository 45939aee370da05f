"""CopyOnWriteMap: shares an image's mapping until the first change, then works on one copy of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class CopyOnWriteMap(Generic[K, V]):
    """`now` is the current mapping, to be read only; `edit()` returns the copy, to be changed."""

    __slots__ = ("_copy", "now")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.now: Mapping[K, V] = base
        self._copy: dict[K, V] | None = None

    def edit(self) -> dict[K, V]:
        if self._copy is None:
            self.now = self._copy = dict(self.now)
        return self._copy
