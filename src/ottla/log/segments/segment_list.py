"""The segments of a partition log, in the order of their base offsets. The last one is active: appends go to it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from ottla.errors import BrokenInvariant
from ottla.log.segments.segment import Segment


class Segments:
    """A sorted collection of segments."""

    __slots__ = ("_bases", "_items", "active")

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._items = sorted(segments, key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._items]
        self.active: Segment
        """The last segment; appends go to it. Unset while the list is empty."""
        self._set_active()

    def _set_active(self) -> None:
        if self._items:
            self.active = self._items[-1]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __contains__(self, segment: object) -> bool:
        """Whether this segment object, not just one with its base offset, is in the list."""
        return isinstance(segment, Segment) and self.at(segment.base_offset) is segment

    @property
    def first(self) -> Segment:
        if not self._items:
            raise BrokenInvariant("a partition log has no segment")
        return self._items[0]

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._items)

    def at(self, base_offset: int) -> Segment | None:
        """The segment with exactly this base offset."""
        index = bisect_left(self._bases, base_offset)
        return self._items[index] if index < len(self._bases) and self._bases[index] == base_offset else None

    def floor(self, offset: int) -> Segment | None:
        """The segment with the largest base offset at or below `offset`."""
        index = bisect_right(self._bases, offset)
        return self._items[index - 1] if index else None

    def above(self, offset: int) -> Segment | None:
        """The segment with the smallest base offset above `offset`."""
        index = bisect_right(self._bases, offset)
        return self._items[index] if index < len(self._items) else None

    def all_from(self, offset: int) -> list[Segment]:
        """The segment that may hold `offset`, and all after it."""
        return self._items[max(0, bisect_right(self._bases, offset) - 1) :]

    def between(self, start_offset: int, end_offset: int) -> list[Segment]:
        """The segments that may hold offsets from `start_offset` up to, not including, `end_offset`."""
        if start_offset >= end_offset:
            return []
        first = max(0, bisect_right(self._bases, start_offset) - 1)
        return self._items[first : bisect_left(self._bases, end_offset)]

    def add(self, segment: Segment) -> Segment | None:
        """Insert a segment; returns the one with the same base offset that it replaces, if any."""
        index = bisect_left(self._bases, segment.base_offset)
        if index < len(self._bases) and self._bases[index] == segment.base_offset:
            replaced, self._items[index] = self._items[index], segment
            self._set_active()
            return replaced
        self._bases.insert(index, segment.base_offset)
        self._items.insert(index, segment)
        self._set_active()
        return None

    def remove(self, segment: Segment) -> None:
        """Remove this segment object; does nothing if it is not in the list."""
        if segment in self:
            index = bisect_left(self._bases, segment.base_offset)
            del self._bases[index], self._items[index]
            self._set_active()
