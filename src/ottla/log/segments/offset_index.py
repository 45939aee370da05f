"""The offset index of a segment (`.index`): from which position of the log file to search for an offset.

An entry is 8 bytes, big-endian: relative offset int32, position int32. It says that the batch at `position` ends with offset
base + relative. One entry is written for every index.interval.bytes of log, never for the first batch.

An index is a hint that is checked where it is used (`scan.py`): the batch found at `position` must not end after the entry's
offset, else the index is wrong and is rebuilt.
"""

import sys
from array import array
from typing import NamedTuple

from ottla.log.segments.sparse_index import KEY, VALUE, Columns, SparseIndex

IS_LITTLE_ENDIAN = sys.byteorder == "little"
ENTRY_SIZE = 8
RELATIVE_OFFSET_MAX = (1 << 31) - 1


class OffsetPosition(NamedTuple):
    """An offset and the position of a batch at or before it."""

    offset: int
    position: int


class OffsetIndex(SparseIndex):
    """Offset → position of the batch that ends with it; keys are relative offsets, values are positions."""

    __slots__ = ()
    ENTRY_SIZE = ENTRY_SIZE

    def decode(self, data: bytes) -> Columns:
        flat = array("i", data)
        if IS_LITTLE_ENDIAN:
            flat.byteswap()
        return flat[0::2], flat[1::2]

    def encode(self, keys: "array[int]", values: "array[int]") -> bytes:
        flat = array("i", [0]) * (2 * len(keys))
        flat[0::2] = array("i", keys)
        flat[1::2] = array("i", values)
        if IS_LITTLE_ENDIAN:
            flat.byteswap()
        return flat.tobytes()

    @property
    def last_offset(self) -> int:
        """The last offset that has an entry; the segment's base offset if none has."""
        return self.base_offset + self.last_key

    def append(self, last_offset: int, position: int) -> None:
        """Add an entry: the batch at `position` ends with `last_offset`, which must be larger than in all entries before."""
        self.add(last_offset - self.base_offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The entry with the largest offset at or below `offset`; the beginning of the segment if there is none."""
        return self.around(offset)[0]

    def around(self, offset: int) -> tuple[OffsetPosition, OffsetPosition | None]:
        """The entry that `lookup` finds and the one after it; None if that is not in memory."""
        number = self._number_at_or_below(KEY, offset - self.base_offset)
        if number < 0:
            return OffsetPosition(self.base_offset, 0), None
        (keys, values), start = self._page_of(number)
        number -= start
        found = OffsetPosition(self.base_offset + keys[number], values[number])
        number += 1
        if number == len(keys):
            return found, None
        return found, OffsetPosition(self.base_offset + keys[number], values[number])

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at or after `position`, if there is one."""
        number = self._number_at_or_above(VALUE, position)
        return self.base_offset + self.entry(number)[0] if number >= 0 else None

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        self._truncate_count(KEY, offset - self.base_offset)
