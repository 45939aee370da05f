"""A segment: one log file with its indexes, from `base_offset` up to the next segment's base offset.

Owns the segment's files (`SegmentFiles`), its size, its largest timestamp and whether it is full. Does not know producers,
leader epochs or watermarks. Appends go to the page cache; `sync` makes them durable. Reads give file ranges, never bytes.

An index that turns out to be wrong is rebuilt from the log file at once; `offset_index.py` says how it is checked.
"""

import logging
from collections.abc import Iterable
from typing import NamedTuple

from ottla.config.topic import LogConfig
from ottla.env import Buffer, Disk, File, FileRange, OpenMode
from ottla.errors import CorruptFile, OttlaError
from ottla.log.fast_path.kernels import UNKNOWN_TIMESTAMP, SegmentTail
from ottla.log.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_file_name,
)
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from ottla.log.segments.scan import BatchPlace, batch_at, damage, find_offset, headers
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset
from ottla.log.segments.txn_index import TxnIndex
from ottla.records.batch import BatchView

# The four files of a segment: opened, synced, renamed and removed together.
#
# NNNNNNNNNNNNNNNNNNNN.log, .index, .timeindex and, if a transaction was aborted, .txnindex. `state` is the ending after that:
# empty, `.cleaned`, `.swap` or `.deleted`. The log file is opened at once. Indexes are opened by name when first needed, so
# call `hold` before renaming a segment that is still read.


class SegmentFiles(SegmentTail):
    """The files of one segment."""

    __slots__ = ("disk", "folder", "is_held", "state", "txn_index")

    file: File
    offset_index: OffsetIndex
    time_index: TimeIndex

    def __init__(
        self,
        disk: Disk,
        folder: str,
        base_offset: int,
        config: LogConfig,
        mode: OpenMode,
        state: str,
        known_size: int | None = None,
    ) -> None:
        self.disk = disk
        self.folder = folder
        self.base_offset = base_offset
        self.state = state
        self.is_held = False
        path = self.path(LOG_SUFFIX)
        self.file = disk.open(path, mode) if known_size is None else disk.open_later(path, known_size)
        size_max = config.segment_index_bytes
        self.offset_index = OffsetIndex(disk, self.path(OFFSET_INDEX_SUFFIX), base_offset, size_max)
        self.time_index = TimeIndex(disk, self.path(TIME_INDEX_SUFFIX), base_offset, size_max)
        self.txn_index = TxnIndex(disk, self.path(TXN_INDEX_SUFFIX), base_offset)

    def path(self, suffix: str) -> str:
        """The current path of the file with `suffix`."""
        return f"{self.folder}/{segment_file_name(self.base_offset, suffix, self.state)}"

    @property
    def size(self) -> int:
        """Size of the log file in bytes."""
        return self.file.size

    def empty(self) -> None:
        """Truncate all files to zero."""
        if self.file.size:
            self.file.truncate(0)
        self.offset_index.reset()
        self.time_index.reset()
        self.txn_index.reset()

    async def sync(self) -> None:
        """Make the records and the open indexes durable."""
        await self.file.sync()
        await self.offset_index.sync()
        await self.time_index.sync()
        await self.txn_index.sync()

    def written_files(self) -> list[File]:
        """The files that are open, with everything written to them: what `sync` would sync."""
        self.offset_index.write_out()
        self.time_index.write_out()
        files = (self.file, self.offset_index.file, self.time_index.file, self.txn_index.file)
        return [file for file in files if file is not None]

    def hold(self) -> None:
        """Open every index and keep it open until `release_held`, so that readers need no file by name during a rename."""
        self.is_held = True
        self.file.range(0, 0)  # opens it, if that was put off
        self.offset_index.open()
        self.time_index.open()
        self.txn_index.load()

    def release_indexes(self) -> None:
        """Close the indexes, unless they are held; a read opens them again."""
        if self.is_held:
            return
        self.offset_index.close()
        self.time_index.close()
        self.txn_index.close()

    def release_held(self) -> None:
        """End `hold`: the renames are done."""
        self.is_held = False
        self.release_indexes()

    def abandon(self) -> None:
        """Close the files without writing: they will be removed, or their disk has failed. Ranges given out stay readable."""
        self.is_held = False
        self.offset_index.abandon()
        self.time_index.abandon()
        self.txn_index.close()
        self.file.close()

    async def change_state(self, state: str) -> None:
        """Rename the files to the ending `state`, the log file first."""
        for suffix in SEGMENT_SUFFIXES:
            old = self.path(suffix)
            if self.disk.exists(old):
                await self.disk.rename(old, f"{self.folder}/{segment_file_name(self.base_offset, suffix, state)}")
        self.state = state
        self._follow_names()

    def move_to(self, folder: str) -> None:
        """Use `folder`, to which the partition's folder was renamed."""
        self.folder = folder
        self._follow_names()

    def _follow_names(self) -> None:
        self.file.follow(self.path(LOG_SUFFIX))
        self.offset_index.path = self.path(OFFSET_INDEX_SUFFIX)
        self.time_index.path = self.path(TIME_INDEX_SUFFIX)
        self.txn_index.path = self.path(TXN_INDEX_SUFFIX)

    async def delete(self) -> None:
        """Remove the files."""
        self.abandon()
        for suffix in SEGMENT_SUFFIXES:
            await self.disk.remove(self.path(suffix))


logger = logging.getLogger("ottla.log")

CUT_CHECK_BYTES = 1 << 20
"""How many bytes after its last entry a time index is compared with the batches when a segment is opened."""


LARGE_BATCH_BYTES = 8192
"""If two index entries are this far apart, there is most likely one batch between them: index.interval.bytes is 4096."""

POSITION_MAX = (1 << 31) - 1
"""The largest position in a log file: indexes store positions as int32."""


class SegmentOverflow(OttlaError):
    """A segment written by an old Kafka spans more offsets than an index can store. Loading splits it."""

    def __init__(self, segment: "Segment") -> None:
        super().__init__(
            f"{segment.file.path} spans more than {RELATIVE_OFFSET_MAX} offsets, as Kafka before 1.1 could write it. "
            "It is split when the log is loaded after an unclean stop"
        )
        self.segment = segment


class SegmentRead(NamedTuple):
    """The result of a read: a range that begins with the batch that holds the requested offset."""

    range: FileRange | None
    place: BatchPlace
    first_batch_incomplete: bool


class Segment(SegmentFiles):
    """One segment of a partition log."""

    __slots__ = ()

    def __init__(
        self,
        disk: Disk,
        folder: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        mode: OpenMode = OpenMode.WRITE,
        state: str = "",
        roll_jitter_ms: int = 0,
        known_size: int | None = None,
        is_durable: bool = False,
        has_txn_index: bool = True,
    ) -> None:
        """Open the segment's files. `state` is the end of their names.

        With a `known_size` the log file is opened when it is first used. `is_durable`: a clean shutdown has synced the files.
        Without `has_txn_index` the file of the transaction index is not looked for.
        """
        super().__init__(disk, folder, base_offset, config, mode, state, known_size)
        if is_durable:
            self.file.note_durable()
            self.offset_index.is_durable = self.time_index.is_durable = True
        if not has_txn_index:
            self.txn_index.note_missing()
        self.is_dormant = False
        self.created_ms = now_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.index_interval_bytes = config.index_interval_bytes
        self.bytes_since_index_entry = 0
        self._first_timestamp = self._max_timestamp = UNKNOWN_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._last_base_offset = self._last_offset = self._last_position = self._last_size = 0

    @classmethod
    def create(
        cls,
        disk: Disk,
        folder: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        state: str = "",
        roll_jitter_ms: int = 0,
    ) -> "Segment":
        """A new, empty segment. Leftover files of that name are emptied."""
        segment = cls(
            disk, folder, base_offset, config, now_ms=now_ms, mode=OpenMode.CREATE, state=state, roll_jitter_ms=roll_jitter_ms
        )
        segment.empty()
        segment._max_timestamp = NO_TIMESTAMP
        return segment

    def __repr__(self) -> str:
        return f"Segment(base_offset={self.base_offset}, size={self.file.size}, state={self.state!r})"

    # -- timestamps

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any record so far; -1 if none is known."""
        if self._max_timestamp == UNKNOWN_TIMESTAMP:
            self._max_timestamp, self._max_timestamp_offset = self._load_max_timestamp()
        return self._max_timestamp

    def _load_max_timestamp(self) -> TimestampOffset:
        """The last entry of the time index. If a batch after it has a larger timestamp, the index was cut and is rebuilt.

        Checks no more than `CUT_CHECK_BYTES` after the entry. Without this limit, one record with a timestamp in the future
        would make every batch after it be read, in every segment, on the loop.
        """
        was_open = self.time_index.is_open
        try:
            entry = self.time_index.last_entry
            largest = self._scan_largest_timestamp(CUT_CHECK_BYTES)
            if largest != entry:
                raise CorruptIndex(self.time_index.path, 0, f"it ends with {entry.timestamp}, not {largest.timestamp}", "")
        except CorruptFile as error:
            self.rebuild_indexes(error)
            return TimestampOffset(self.max_timestamp, self.max_timestamp_offset)
        if not was_open:
            self.release_indexes()
        return entry

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch that has the largest timestamp."""
        _ = self.max_timestamp
        return self._max_timestamp_offset

    @property
    def largest_timestamp(self) -> int:
        """The time that retention uses: the largest record timestamp, or the file's modification time if no record has one."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.disk.modified_ms(self.path(LOG_SUFFIX))

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 if there is no batch or it has none."""
        if self._first_timestamp == UNKNOWN_TIMESTAMP:
            for _, view in headers(self.file, 0, self.file.size, chunk_bytes=256):
                self._first_timestamp = view.max_timestamp
                break
            else:
                return NO_TIMESTAMP
        return self._first_timestamp

    # -- appending

    def activate(self) -> None:
        """Make this the active segment: open its indexes and load its largest timestamp."""
        self.is_dormant = False
        try:
            self.offset_index.open()
            self.time_index.open()
        except CorruptIndex as error:
            self.rebuild_indexes(error)
        _ = self.max_timestamp

    def should_roll(self, config: LogConfig, size_bytes: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool:
        """Whether the log must roll before `size_bytes` that end with `last_offset` are appended."""
        return self.must_roll(config.segment_bytes, config.segment_age_max_ms, size_bytes, max_timestamp, last_offset, now_ms)

    def has_room(self, size_bytes: int, last_offset: int) -> bool:
        """Whether `size_bytes` more fit the indexes and their int32 values. Ignores segment.bytes and segment.ms."""
        return (
            self.file.size + size_bytes <= POSITION_MAX
            and 0 <= last_offset - self.base_offset <= RELATIVE_OFFSET_MAX
            and not self.offset_index.is_full
            and not self.time_index.is_full
        )

    def append(self, data: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Append one batch whose offsets are set."""
        self.append_one(data, len(data), base_offset, last_offset, max_timestamp)

    def append_batches(self, data: Buffer, batches: Iterable[BatchView]) -> None:
        """Append `data`, which is `batches` one after the other."""
        position = self.file.append(data)
        for view in batches:
            size = view.size
            self.count_in(position, size, view.base_offset, view.last_offset, view.max_timestamp)
            position += size

    def finish(self) -> None:
        """Complete the indexes: the segment is no longer the active one."""
        self.time_index.open()
        self.time_index.append_if_larger(self.max_timestamp, self.max_timestamp_offset)
        self.time_index.write_out()
        self.offset_index.write_out()

    # -- finding and reading

    def find(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or after `offset`; None if the segment ends before it."""
        if self._last_size and offset >= self._last_base_offset:
            if offset > self._last_offset:
                return None
            return BatchPlace(self._last_base_offset, self._last_offset, self._last_position, self._last_size)
        try:
            (offset_found, position), after = self.offset_index.around(offset)
        except CorruptIndex as error:
            self.rebuild_indexes(error)
            (offset_found, position), after = self.offset_index.around(offset)
        size = self.file.size
        if after is not None and offset_found < offset and after.position - position >= LARGE_BATCH_BYTES:
            # Large batches have an entry each, so the next entry's batch is the one, unless some small ones come before it.
            place = batch_at(self.file, after.position, size)
            if place is not None and place.base_offset <= offset and place.last_offset == after.offset:
                return place
        if position == 0:
            return find_offset(self.file, offset, 0, size)
        try:
            if not 0 < position < size:
                raise CorruptIndex(self.offset_index.path, 0, f"position {position} lies outside the log file", "")
            return find_offset(self.file, offset, position, size, offset_found)
        except CorruptFile as error:
            # The index may be wrong. If the log file itself is damaged, rebuilding the index raises that.
            self.rebuild_indexes(error)
            offset_found, position = self.offset_index.lookup(offset)
            return find_offset(self.file, offset, position, size, offset_found if position else None)

    def read(self, offset: int, max_bytes: int, max_position: int | None, min_one_batch: bool) -> SegmentRead | None:
        """A range of up to `max_bytes` from the batch that holds `offset`, not past `max_position`.

        With `min_one_batch` the first batch is whole, however large. None if the segment ends before `offset`; a
        `SegmentRead` without a range if nothing may be read.
        """
        place = self.find(offset)
        if place is None:
            return None
        if min_one_batch and max_bytes < place.size:
            max_bytes = place.size
        if max_bytes <= 0 or max_position is None or max_position <= place.position:
            return SegmentRead(None, place, False)
        length = min(max_position - place.position, max_bytes)
        return SegmentRead(self.file.range(place.position, length), place, max_bytes < place.size)

    def next_offset(self) -> int:
        """The offset after the last batch, read from the file."""
        if self._last_size:
            return self._last_offset + 1
        place = self.find(self._last_indexed_offset())
        if place is None:
            return self.base_offset
        next_offset = place.last_offset + 1
        for _, view in headers(self.file, place.position, self.file.size):
            next_offset = view.next_offset
        return next_offset

    def _last_indexed_offset(self) -> int:
        try:
            self.offset_index.open()
        except CorruptIndex as error:
            self.rebuild_indexes(error)
        return self.offset_index.last_offset

    # -- changing

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Cut everything from the batch that holds `offset` on; returns how many bytes were cut."""
        place = self.find(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        size_before = self.file.size
        if place is not None:
            self.file.truncate(place.position)
        if not self.file.size:
            self.created_ms = now_ms
            self._first_timestamp = UNKNOWN_TIMESTAMP
        self.bytes_since_index_entry = self._last_size = 0
        self._max_timestamp, self._max_timestamp_offset = self._scan_largest_timestamp()
        return size_before - self.file.size

    def _scan_largest_timestamp(self, bytes_max: int | None = None) -> TimestampOffset:
        """The last time index entry, or a larger timestamp of a batch after it."""
        largest, offset = self.time_index.last_entry
        place = self.find(offset)
        start = place.position if place else 0
        for position, view in headers(self.file, start, self.file.size):
            if bytes_max is not None and position - start > bytes_max:
                break
            if view.max_timestamp > largest:
                largest, offset = view.max_timestamp, view.last_offset
        return TimestampOffset(largest, offset)

    def rebuild_indexes(self, reason: CorruptFile | None = None) -> None:
        """Rebuild offset and time index from the headers of the log file; `CorruptFile` if the log file is damaged."""
        if reason is not None:
            logger.warning("rebuilding the indexes of %s: %s", self.file.path, reason)
        self.begin_rebuild()
        for position, view in headers(self.file, 0, self.file.size):
            self.index_batch(position, view)
        self.finish()

    def begin_rebuild(self) -> None:
        """Empty offset and time index; `index_batch` is then called for every batch, in order, and `finish` at the end."""
        self.offset_index.reset()
        self.time_index.reset()
        self._max_timestamp, self._max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self.bytes_since_index_entry = self._last_size = 0

    def index_batch(self, position: int, view: BatchView) -> None:
        """Add a batch of the file to the indexes; `SegmentOverflow` if they cannot store its offsets."""
        if view.last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            raise SegmentOverflow(self)
        if view.base_offset < self.base_offset:
            raise damage(self.file, position, f"the batch begins at offset {view.base_offset}, before its segment does")
        self.index(position, view.size, view.last_offset, view.max_timestamp)

    def close(self) -> None:
        """Complete and close the files."""
        if self._max_timestamp != UNKNOWN_TIMESTAMP:
            self.finish()
        self.release_held()
        self.file.close()
