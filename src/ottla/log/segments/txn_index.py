"""The transaction index of a segment (`.txnindex`): the aborted transactions whose markers lie in the segment.

An entry is 34 bytes, big-endian: version int16 (0), producer id int64, first offset int64, last offset int64 (the abort
marker's), last stable offset int64 (as it was once the marker was written). Entries are in the order of their last offsets.
The file is created with its first entry, so most segments have none. Entries that were read stay in memory, 32 bytes each.
"""

from array import array
from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

from ottla.env import Disk, File, OpenMode
from ottla.log.segments.sparse_index import CorruptIndex

ENTRY = Struct(">hqqqq")
ENTRY_SIZE = 34
VERSION = 0
_NONE: "array[int]" = array("q")
"""Shared by all indexes that are not loaded. Never changed."""

REMEDY = "The index is rebuilt from the records of its segment"


class AbortedTxn(NamedTuple):
    """A transaction that was aborted: read_committed consumers skip its records."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """Aborted transactions, by the offset of their marker."""

    __slots__ = ("_file", "_first", "_is_missing", "_last", "_loaded", "_producer", "_stable", "base_offset", "disk", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self._file: File | None = None
        self._is_missing = False
        self._loaded = False
        self._producer = self._first = self._last = self._stable = _NONE  # until it is loaded

    def _clear(self) -> None:
        self._producer, self._first, self._last, self._stable = array("q"), array("q"), array("q"), array("q")

    def note_missing(self) -> None:
        """There is no file, so `load` need not look for it."""
        self._is_missing = True

    def load(self) -> None:
        """Read the entries, at the first call; `CorruptIndex` if they cannot be those of this segment."""
        if self._loaded:
            return
        self._clear()
        if not self._is_missing and self.disk.exists(self.path):
            file = self.disk.open(self.path, OpenMode.WRITE)
            if file.size % ENTRY_SIZE:
                raise CorruptIndex(self.path, file.size, f"the size is not a multiple of {ENTRY_SIZE}", REMEDY)
            self._read(file)
            self._file = file
        self._loaded = True

    def _read(self, file: File) -> None:
        position, last_before = 0, -1
        for version, producer_id, first, last, stable in ENTRY.iter_unpack(file.read(0, file.size)):
            if version != VERSION:
                raise CorruptIndex(self.path, position, f"an entry has version {version}, not {VERSION}", REMEDY)
            if last < self.base_offset or not 0 <= first <= last or stable < 0 or last <= last_before or producer_id < 0:
                raise CorruptIndex(self.path, position, "the offsets of an entry do not fit the segment or each other", REMEDY)
            self._hold(producer_id, first, last, stable)
            position, last_before = position + ENTRY_SIZE, last

    def _hold(self, producer_id: int, first: int, last: int, stable: int) -> None:
        self._producer.append(producer_id)
        self._first.append(first)
        self._last.append(last)
        self._stable.append(stable)

    @property
    def count(self) -> int:
        self.load()
        return len(self._last)

    def all(self) -> list[AbortedTxn]:
        self.load()
        return [AbortedTxn(*entry) for entry in zip(self._producer, self._first, self._last, self._stable, strict=True)]

    def append(self, txn: AbortedTxn) -> None:
        """Add an aborted transaction; its last offset must be larger than in all entries before."""
        self.load()
        if self._file is None:
            self._file = self.disk.open(self.path, OpenMode.CREATE)
            self._is_missing = False
        self._file.append(ENTRY.pack(VERSION, *txn))
        self._hold(*txn)

    def collect(self, start_offset: int, upper_offset: int, into: list[AbortedTxn]) -> bool:
        """Add entries that overlap [start_offset, upper_offset) to `into`; True if no later segment can have another."""
        self.load()
        for number in range(bisect_left(self._last, start_offset), len(self._last)):
            if self._first[number] < upper_offset:
                into.append(AbortedTxn(self._producer[number], self._first[number], self._last[number], self._stable[number]))
            if self._stable[number] >= upper_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Keep the entries whose marker is below `offset`."""
        count = bisect_left(self._last, offset) if self.count else 0
        if self._file is not None and count < len(self._last):
            self._file.truncate(count * ENTRY_SIZE)
            for column in (self._producer, self._first, self._last, self._stable):
                del column[count:]

    def reset(self) -> None:
        """Remove all entries, also from the file."""
        if self._file is None and not self._is_missing and self.disk.exists(self.path):
            self._file = self.disk.open(self.path, OpenMode.WRITE)
        if self._file is not None:
            self._file.truncate(0)
        self._clear()
        self._loaded = True

    async def sync(self) -> None:
        if self._file is not None:
            await self._file.sync()

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def file(self) -> File | None:
        """The open file; None if it is not open."""
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._loaded = False
