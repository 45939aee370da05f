"""The base of the offset index and the time index: a file of sorted, fixed-size entries with its tail in memory.

Every entry is a key and a value. Both grow from one entry to the next, so either can be searched. Entries are written in
blocks: recovery rebuilds from the records what the file lacks after a crash, and `write_out` comes before every sync, roll and
close. Reads use the tail in memory, else one page of the file, which is cached for the next read.

Apache Kafka preallocates the index of an active segment and leaves it padded with zeros when it is killed. No real entry is all
zero, except the first of a time index whose only batch has offset 0 and timestamp 0. So trailing zeros are skipped, but a file
of just one entry is taken as it is.

The file is opened at the first use: a node with thousands of segments opens only the indexes it reads.
"""

from array import array
from bisect import bisect_right

from ottla.env import Disk, File, OpenMode
from ottla.errors import CorruptFile
from ottla.log.fast_path.kernels import BLOCK_ENTRIES, IndexTail

TAIL_ENTRIES_MAX = 4 * BLOCK_ENTRIES
"""Entries held in memory; older ones are read from the file."""
PAGE_ENTRIES = 512

REMEDY = "The index is rebuilt from the records of its segment"
KEY, VALUE = 0, 1


class CorruptIndex(CorruptFile):
    """An index is wrong. It can always be rebuilt from the records."""


Columns = tuple["array[int]", "array[int]"]

_NONE: "array[int]" = array("q")
_NO_PAGE: Columns = (_NONE, _NONE)
"""Shared by all indexes, so that one that is not in use takes little memory. Never changed."""


class SparseIndex(IndexTail):
    """Sorted entries in a file, with `lookup`s by key or value, appends at the end and truncation."""

    __slots__ = (
        "_file",
        "_page",
        "_page_start",
        "_tail_start",
        "disk",
        "is_durable",
        "path",
    )
    ENTRY_SIZE = 0
    LAST_KEY_OF_NONE = 0

    def __init__(self, disk: Disk, path: str, base_offset: int, size_max_bytes: int) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.entries_max = size_max_bytes // self.ENTRY_SIZE
        self.is_durable = False  # set if a clean shutdown has synced the file; until it is first opened
        self._file: File | None = None
        self.count = self._written = self._tail_start = 0
        self._keys = self._values = _NONE  # until the file is opened
        self._page_start, self._page = -1, _NO_PAGE
        self.last_key, self.last_value = self.LAST_KEY_OF_NONE, 0

    def decode(self, data: bytes) -> Columns:
        """The keys and values of whole entries."""
        raise NotImplementedError

    def encode(self, keys: "array[int]", values: "array[int]") -> bytes:
        """The bytes of entries."""
        raise NotImplementedError

    @property
    def is_full(self) -> bool:
        """Whether the segment must be rolled because this index has no room for another entry."""
        return self.count >= self.entries_max

    # -- opening and closing

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def file(self) -> File | None:
        """The open file; None if it is not open."""
        return self._file

    def open(self) -> File:
        """The file, opened and checked at the first call; `CorruptIndex` if it cannot be an index of this segment."""
        if self._file is not None:
            return self._file
        file = self.disk.open(self.path, OpenMode.CREATE)
        if self.is_durable:
            self.is_durable = False
            file.note_durable()
        if file.size % self.ENTRY_SIZE:
            raise CorruptIndex(self.path, file.size, f"the size is not a multiple of {self.ENTRY_SIZE}", REMEDY)
        self.count = self._count_without_padding(file)
        self._forget()
        self._file = file
        if self.count:
            keys, values = self.decode(file.read((self.count - 1) * self.ENTRY_SIZE, self.ENTRY_SIZE))
            self.last_key, self.last_value = keys[0], values[0]
            first_key, first_value = self.entry(0)
            if first_key < 0 or first_value < 0 or self.last_key < first_key or self.last_value < first_value:
                self._file = None
                raise CorruptIndex(self.path, 0, "the first entry is negative or more than the last", REMEDY)
        return file

    def _count_without_padding(self, file: File) -> int:
        count = file.size // self.ENTRY_SIZE
        size, zeros = self.ENTRY_SIZE, bytes(self.ENTRY_SIZE)
        if count < 2 or file.read((count - 1) * size, size) != zeros:
            return count
        low, high = 0, count - 1  # entry `high` is zero; find the first that is
        while low < high:
            middle = (low + high) // 2
            if file.read(middle * size, size) == zeros:
                high = middle
            else:
                low = middle + 1
        return low

    def _forget(self) -> None:
        """Drop the tail and the cached page: every entry is in the file."""
        self._written = self.count
        self._tail_start = self.count
        self._keys, self._values = array("q"), array("q")
        self._page_start, self._page = -1, _NO_PAGE
        if not self.count:
            self.last_key, self.last_value = self.LAST_KEY_OF_NONE, 0

    def write_out(self) -> None:
        """Write every entry to the file and cut padding off. An index that is not open has nothing to write."""
        file = self._file
        if file is None:
            return
        size = self._written * self.ENTRY_SIZE
        if file.size > size:
            file.truncate(size)
        if self._written < self.count:
            first = self._written - self._tail_start
            file.append(self.encode(self._keys[first:], self._values[first:]))
            self._written = self.count

    async def sync(self) -> None:
        """Make every entry durable."""
        if self._file is not None:
            self.write_out()
            await self._file.sync()

    def close(self) -> None:
        """Write unwritten entries, cut padding off, and close the file."""
        if self._file is not None:
            self.write_out()
            self._file.close()
            self._file = None

    def abandon(self) -> None:
        """Close the file without writing: it will be removed, or its disk has failed."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def reset(self) -> None:
        """Remove all entries, also from the file."""
        if self._file is None:
            self._file = self.disk.open(self.path, OpenMode.CREATE)
        self._file.truncate(0)
        self.count = 0
        self._forget()

    # -- entries

    def entry(self, number: int) -> tuple[int, int]:
        """Key and value of entry `number`."""
        columns, start = self._page_of(number)
        return columns[0][number - start], columns[1][number - start]

    def write_block(self) -> None:
        self.write_out()
        if len(self._keys) >= TAIL_ENTRIES_MAX:
            dropped = TAIL_ENTRIES_MAX // 2
            del self._keys[:dropped]
            del self._values[:dropped]
            self._tail_start += dropped
            self._page_start = -1  # the page may have ended where the tail began

    def _page_of(self, number: int) -> tuple[Columns, int]:
        """Decoded entries around `number`, and the number of the first of them."""
        if number >= self._tail_start:
            return (self._keys, self._values), self._tail_start
        start = number - number % PAGE_ENTRIES
        if start != self._page_start:
            end = min(start + PAGE_ENTRIES, self._tail_start)
            data = self.open().read(start * self.ENTRY_SIZE, (end - start) * self.ENTRY_SIZE)
            if len(data) != (end - start) * self.ENTRY_SIZE:
                raise CorruptIndex(self.path, start * self.ENTRY_SIZE, "the file has become shorter", REMEDY)
            self._page = self.decode(data)
            self._page_start = start
        return self._page, self._page_start

    def _number_at_or_below(self, column: int, target: int) -> int:
        """The last entry whose key (or value) is at most `target`; -1 if there is none."""
        self.open()
        tail = self._values if column else self._keys
        if self._tail_start < self.count and tail[0] <= target:
            return self._tail_start + bisect_right(tail, target) - 1
        page = self._page[column]
        if self._page_start >= 0 and page and page[0] <= target < page[-1]:
            return self._page_start + bisect_right(page, target) - 1
        low, high = -1, (self._tail_start + PAGE_ENTRIES - 1) // PAGE_ENTRIES - 1
        while low < high:  # the last page that begins at or below the target
            middle = (low + high + 1) // 2
            if self._first_of_page(column, middle) <= target:
                low = middle
            else:
                high = middle - 1
        if low < 0:
            return -1
        columns, start = self._page_of(low * PAGE_ENTRIES)
        return start + bisect_right(columns[column], target) - 1

    def _number_at_or_above(self, column: int, target: int) -> int:
        """The first entry whose key (or value) is at least `target`; -1 if there is none."""
        number = self._number_at_or_below(column, target - 1) + 1
        return number if number < self.count else -1

    def _first_of_page(self, column: int, page: int) -> int:
        number = page * PAGE_ENTRIES
        return self.decode(self.open().read(number * self.ENTRY_SIZE, self.ENTRY_SIZE))[column][0]

    def _truncate_count(self, column: int, target: int) -> None:
        """Keep the entries whose key (or value) is less than `target`."""
        count = self._number_at_or_below(column, target - 1) + 1
        if count == self.count:
            return
        self.write_out()
        self.open().truncate(count * self.ENTRY_SIZE)
        self.count = count
        self._forget()
        if count:
            self.last_key, self.last_value = self.entry(count - 1)
