"""A mapping on its way from one image to the next: the old one itself until something changes, then one copy of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Draft(Generic[K, V]):
    """`now` is what the mapping holds at this moment; `edit()` is where to change it."""

    __slots__ = ("_copy", "now")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.now: Mapping[K, V] = base
        self._copy: dict[K, V] | None = None

    def edit(self) -> dict[K, V]:
        if self._copy is None:
            self.now = self._copy = dict(self.now)
        return self._copy
