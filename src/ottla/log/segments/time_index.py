"""The time index of a segment (`.timeindex`): from which offset to search for a timestamp.

An entry is 12 bytes, big-endian: timestamp int64, relative offset int32. It says that `timestamp` is the largest in the segment
up to and including the batch that ends with offset base + relative; larger ones come later. An entry is added with each entry
of the offset index, if the largest timestamp has grown, and a last one when the segment is rolled or closed.
"""

from array import array
from itertools import chain
from struct import iter_unpack, pack
from typing import NamedTuple

from ottla.env import Disk
from ottla.log.segments.sparse_index import KEY, VALUE, Columns, SparseIndex

ENTRY_SIZE = 12
NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """A timestamp and the last offset of the batch that has it."""

    timestamp: int
    offset: int


class TimeIndex(SparseIndex):
    """Timestamp → offset; keys are timestamps, values are relative offsets."""

    __slots__ = ()
    ENTRY_SIZE = ENTRY_SIZE
    LAST_KEY_OF_NONE = NO_TIMESTAMP

    def decode(self, data: bytes) -> Columns:
        timestamps, offsets = array("q"), array("q")
        for timestamp, relative in iter_unpack(">qi", data):
            timestamps.append(timestamp)
            offsets.append(relative)
        return timestamps, offsets

    def encode(self, keys: "array[int]", values: "array[int]") -> bytes:
        return pack(">" + "qi" * len(keys), *chain.from_iterable(zip(keys, values, strict=True)))

    def __init__(self, disk: Disk, path: str, base_offset: int, size_max_bytes: int) -> None:
        super().__init__(disk, path, base_offset, size_max_bytes)
        self.entries_max -= 1  # room for the entry that is written when the segment is rolled

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; timestamp -1 at the base offset if there is none."""
        self.open()
        return TimestampOffset(self.last_key, self.base_offset + self.last_value)

    def append_if_larger(self, timestamp: int, offset: int) -> None:
        """Add an entry for the largest timestamp so far, unless the last entry has it."""
        if timestamp > self.last_key:
            self.add(timestamp, offset - self.base_offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The entry with the largest timestamp at or below `timestamp`; timestamp -1 at the base offset if there is none."""
        number = self._number_at_or_below(KEY, timestamp)
        if number < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        found, relative = self.entry(number)
        return TimestampOffset(found, self.base_offset + relative)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        self._truncate_count(VALUE, offset - self.base_offset)
