"""Finds, reads, writes and deletes the snapshot files beside the metadata log.

Owns the `.checkpoint` files in the log's folder. A snapshot is written under another name first, synced, then renamed: a file
with a snapshot's name is always whole. Writing yields to the loop between batches, so that a large image does not delay
requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ottla.env import Disk, OpenMode
from ottla.env.disk import Buffer
from ottla.errors import BrokenInvariant
from ottla.raft.snapshots import (
    CHECKPOINT_SUFFIX,
    PART_SUFFIX,
    SnapshotContent,
    SnapshotId,
    first_batch,
    last_batch,
    parse_snapshot_name,
    read_snapshot,
    record_batches,
    snapshot_name,
    snapshot_timestamp_ms,
)
from ottla.raft.voters import VoterSet
from ottla.records.batch import BatchView

logger = logging.getLogger("ottla.quorum")

SNAPSHOT_BYTES_MAX = 1 << 30
_HEAD_BYTES = 64 << 10
"""Enough for the first batch of any snapshot: a header and the voters."""


class SnapshotStore:
    """The snapshots of one metadata log, by their ids."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        names = [(name, parse_snapshot_name(name)) for name in disk.list_directory(folder)]
        self.ids = sorted(parsed.id for _, parsed in names if parsed is not None and parsed.suffix == CHECKPOINT_SUFFIX)
        self._leftovers = [name for name, parsed in names if parsed is not None and parsed.suffix != CHECKPOINT_SUFFIX]

    @property
    def latest(self) -> SnapshotId | None:
        return self.ids[-1] if self.ids else None

    def path(self, snapshot_id: SnapshotId, suffix: str = CHECKPOINT_SUFFIX) -> str:
        return f"{self._folder}/{snapshot_name(snapshot_id, suffix)}"

    async def tidy(self, log_start_offset: int) -> None:
        """Remove files that a killed process left half written or half deleted, and snapshots before the log's start."""
        for name in self._leftovers:
            await self._disk.remove(f"{self._folder}/{name}")
        self._leftovers = []
        doomed = [old for old in self.ids if old.offset < log_start_offset]
        self.ids = [each for each in self.ids if each not in doomed]
        await self.remove(doomed)

    async def delete_before(self, snapshot_id: SnapshotId) -> None:
        """Remove the snapshots that are older than this one."""
        await self.remove(self.forget_before(snapshot_id))

    def forget_before(self, snapshot_id: SnapshotId) -> list[SnapshotId]:
        """Name no snapshot that is older than this one any more. Returns those, for `remove`."""
        doomed = [old for old in self.ids if old < snapshot_id]
        self.ids = [each for each in self.ids if each not in doomed]
        return doomed

    async def remove(self, doomed: list[SnapshotId]) -> None:
        """Remove the files of forgotten snapshots."""
        for old in doomed:
            logger.info("removing snapshot %s: a later one covers it", old)
            await self._disk.remove(self.path(old))

    def read(self, snapshot_id: SnapshotId) -> SnapshotContent:
        """Read a snapshot; raises `CorruptFile` if it is damaged."""
        path = self.path(snapshot_id)
        return read_snapshot(path, self._disk.read_file(path, SNAPSHOT_BYTES_MAX))

    def size_bytes(self, snapshot_id: SnapshotId) -> int:
        file = self._disk.open(self.path(snapshot_id), OpenMode.READ)
        file.close()
        return file.size

    def timestamp_ms(self, snapshot_id: SnapshotId) -> int:
        """The time of the newest record that a snapshot covers."""
        path = self.path(snapshot_id)
        file = self._disk.open(path, OpenMode.READ)
        try:
            return snapshot_timestamp_ms(path, file.read(0, _HEAD_BYTES))
        finally:
            file.close()

    async def write(
        self,
        snapshot_id: SnapshotId,
        header_ms: int,
        kraft_version: int,
        voters: VoterSet | None,
        values: Iterable[bytes],
        now_ms: int,
    ) -> int:
        """Write a snapshot of encoded records, durably; returns its size in bytes.

        It is removed again if a later one was fetched meanwhile: the log starts at that one.
        """
        part = self.path(snapshot_id, PART_SUFFIX)
        await self._disk.remove(part)
        file = self._disk.open(part, OpenMode.CREATE)
        try:
            first = first_batch(snapshot_id.epoch, header_ms, kraft_version, voters, now_ms)
            file.append(first)
            next_offset = BatchView(first).next_offset
            for batch in record_batches(values, next_offset, snapshot_id.epoch, now_ms):
                file.append(batch)
                next_offset = BatchView(batch).next_offset
                await asyncio.sleep(0)
            file.append(last_batch(next_offset, snapshot_id.epoch, now_ms))
            await file.sync()
            size_bytes = file.size
        finally:
            file.close()
        await self._disk.rename(part, self.path(snapshot_id))
        if self.latest is not None and self.latest > snapshot_id:
            await self.remove([snapshot_id])
        else:
            self.ids = sorted({*self.ids, snapshot_id})
        return size_bytes

    # -- pieces, for replicas that fetch a snapshot

    def range(self, snapshot_id: SnapshotId, position: int, size_bytes: int) -> bytes:
        """A piece of a snapshot."""
        file = self._disk.open(self.path(snapshot_id), OpenMode.READ)
        try:
            return bytes(file.read(position, min(size_bytes, file.size - position)))
        finally:
            file.close()

    async def store(self, snapshot_id: SnapshotId, position: int, piece: Buffer, is_last: bool) -> None:
        """Write a fetched piece; the last one gives the snapshot its name, durably. `CorruptFile` if it is damaged."""
        part = self.path(snapshot_id, PART_SUFFIX)
        if position == 0:
            await self._disk.remove(part)
        file = self._disk.open(part, OpenMode.CREATE if position == 0 else OpenMode.WRITE)
        try:
            if file.size != position:
                raise BrokenInvariant(f"{part} has {file.size} bytes, and the next piece begins at {position}")
            file.append(piece)
            if is_last:
                await file.sync()
        finally:
            file.close()
        if is_last:
            read_snapshot(part, self._disk.read_file(part, SNAPSHOT_BYTES_MAX))
            await self._disk.rename(part, self.path(snapshot_id))
            self.ids = sorted({*self.ids, snapshot_id})

    def next_to_keep(self, log_bytes: int, retention_bytes: int, retention_ms: int, now_ms: int) -> SnapshotId | None:
        """The snapshot at which the log has to start if metadata.max.retention.* deletes the oldest one; None if it stays.

        The oldest is deleted if log and snapshots together are too large or it is too old, and there is a later one.
        """
        if len(self.ids) < 2:
            return None
        too_large = retention_bytes >= 0 and log_bytes + sum(map(self.size_bytes, self.ids)) > retention_bytes
        too_old = retention_ms >= 0 and now_ms - self.timestamp_ms(self.ids[0]) > retention_ms
        return self.ids[1] if too_large or too_old else None
