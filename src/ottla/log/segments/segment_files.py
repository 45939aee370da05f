"""The four files of a segment: opened, synced, renamed and removed together.

NNNNNNNNNNNNNNNNNNNN.log, .index, .timeindex and, if a transaction was aborted, .txnindex. `state` is the ending after that:
empty, `.cleaned`, `.swap` or `.deleted`. The log file is opened at once. Indexes are opened by name when first needed, so call
`hold` before renaming a segment that is still read.
"""

from ottla.config.topic import LogConfig
from ottla.env import Disk, File, OpenMode
from ottla.log.fast_path.kernels import SegmentTail
from ottla.log.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_file_name,
)
from ottla.log.segments.offset_index import OffsetIndex
from ottla.log.segments.time_index import TimeIndex
from ottla.log.segments.txn_index import TxnIndex


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
