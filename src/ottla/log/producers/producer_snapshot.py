"""Producer snapshots: a partition's producers as of an offset, in the file `<offset>.snapshot`.

Format (big endian): version int16 = 1 | crc uint32, the CRC-32C of all that follows | count int32 | per producer: id int64,
epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64, coordinator epoch int32, first offset
of the open transaction int64. Absent sequences and offsets are -1. Only the last batch of a producer is kept: see
`producer_recovery.py` for the four before it.

A snapshot saves replaying the log. A missing or damaged one costs only time: a damaged one is removed, and the next older one
is used. So `write` need not wait for the device.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from struct import Struct

from ottla.env import Disk, File, OpenMode
from ottla.errors import CorruptFile
from ottla.log.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, parse_segment_file_name, segment_file_name
from ottla.log.producers.producer_entry import BatchMetadata, ProducerEntry
from ottla.log.producers.producer_state import ProducerState
from ottla.records.checksum import crc32c

VERSION = 1
_HEADER = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_CRC_COVERS_FROM = 6
_REMEDY = "Delete the file: producers are then read from an older snapshot and the log"


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot of `entries`."""
    data = bytearray(_HEADER.size)
    count = 0
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        first_offset = entry.transaction_first_offset
        data += _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            0 if last is None else last.last_offset - last.first_offset,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            -1 if first_offset is None else first_offset,
        )
        count += 1
    _HEADER.pack_into(data, 0, VERSION, 0, count)
    crc = crc32c(memoryview(data)[_CRC_COVERS_FROM:])
    _HEADER.pack_into(data, 0, VERSION, crc, count)
    return bytes(data)


def decode_snapshot(path: str, data: bytes) -> list[ProducerEntry]:
    """The producers in a snapshot's bytes; `CorruptFile` if they are not what was written."""
    if len(data) < _HEADER.size:
        raise CorruptFile(path, len(data), f"a snapshot has at least {_HEADER.size} bytes, this one {len(data)}", _REMEDY)
    version, crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptFile(path, 0, f"snapshot version {version} is unknown; this release reads version {VERSION}", _REMEDY)
    actual = crc32c(memoryview(data)[_CRC_COVERS_FROM:])
    if crc != actual:
        raise CorruptFile(path, 2, f"the checksum is {actual:#010x}, the file says {crc:#010x}", _REMEDY)
    if count < 0 or len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptFile(path, _CRC_COVERS_FROM, f"{count} producers do not fit in {len(data)} bytes", _REMEDY)
    return [_decode_entry(*values) for values in _ENTRY.iter_unpack(memoryview(data)[_HEADER.size :])]


def _decode_entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp_ms: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    return ProducerEntry(
        producer_id,
        epoch,
        coordinator_epoch,
        timestamp_ms,
        transaction_first_offset if transaction_first_offset >= 0 else None,
        [BatchMetadata.ending_at(last_sequence, last_offset, offset_delta, timestamp_ms)] if last_offset >= 0 else (),
    )


class ProducerSnapshots:
    """The snapshot files of one partition folder."""

    __slots__ = ("_disk", "_folder", "_offset_taken", "_offsets")

    def __init__(self, disk: Disk, folder: str, names: Iterable[str] | None = None, *, is_new: bool = False) -> None:
        """`names` are the files of the folder, if the caller has listed it.

        `is_new`: the log is empty. The folder is not listed, and no snapshot of the empty log is written.
        """
        self._disk = disk
        self._folder = folder
        self._offsets = [] if is_new else self._list(names)
        self._offset_taken = 0 if is_new else self._offsets[-1] if self._offsets else -1

    @property
    def offsets(self) -> list[int]:
        """The offsets of the snapshots, lowest first."""
        return list(self._offsets)

    def path(self, offset: int) -> str:
        return f"{self._folder}/{segment_file_name(offset, SNAPSHOT_SUFFIX)}"

    def move_to(self, folder: str) -> None:
        """Use `folder`, to which the partition's folder was renamed."""
        self._folder = folder

    def write(self, state: ProducerState) -> str | None:
        """Write a snapshot of `state` if the log has grown since the last one; returns its path.

        Goes to the page cache, so a killed process keeps it; `sync` makes it durable.
        """
        return None if state.map_end_offset <= self._offset_taken else self.overwrite(state)

    def overwrite(self, state: ProducerState) -> str:
        """Write a snapshot of `state`, replacing one at the same offset if it exists."""
        offset = state.map_end_offset
        path = self.path(offset)
        file = self._disk.open(path, OpenMode.CREATE)
        try:
            file.truncate(0)
            file.append(encode_snapshot(state.producers.values()))
        finally:
            file.close()
        self._remember(offset)
        return path

    def open(self, offset: int) -> File:
        """The file of the snapshot at `offset`, to be synced and closed."""
        return self._disk.open(self.path(offset), OpenMode.WRITE)

    async def sync(self, offset: int) -> None:
        """Make the snapshot at `offset` durable."""
        file = self.open(offset)
        try:
            await file.sync()
        finally:
            file.close()
        await self._disk.sync_directory(self._folder)

    def read(self, offset: int) -> list[ProducerEntry]:
        """The producers in the snapshot at `offset`; `CorruptFile` if it is damaged."""
        path = self.path(offset)
        return decode_snapshot(path, self._disk.read_file(path))

    async def load(
        self, state: ProducerState, log_start_offset: int, log_end_offset: int, now_ms: int, expiration_ms: int
    ) -> list[CorruptFile]:
        """Set `state` to the newest good snapshot above the log start and not past its end; empty it if there is none.

        The caller then replays the log from `state.map_end_offset` on. Snapshots outside that range and damaged ones are
        removed. Returns the damage found, for the caller to report.
        """
        await self.remove([o for o in self._offsets if not log_start_offset < o <= log_end_offset])
        damage = []
        while self._offsets:
            offset = self._offsets[-1]
            try:
                entries = self.read(offset)
            except CorruptFile as corrupt:
                damage.append(corrupt)
                await self.remove([offset])
                continue
            state.load(entries, offset, now_ms, expiration_ms)
            self._offset_taken = offset
            return damage
        state.reset(log_start_offset)
        self._offset_taken = log_start_offset
        return damage

    async def remove(self, offsets: Iterable[int]) -> None:
        """Remove the snapshots at `offsets`."""
        for offset in list(offsets):
            await self._disk.remove(self.path(offset))
            self._forget(offset)

    async def remove_stray(self, segment_base_offsets: Collection[int]) -> None:
        """Remove the snapshots at no segment's base offset, except the newest if it is above them all (from a shutdown)."""
        bases = set(segment_base_offsets)
        top = max(bases, default=-1)
        strays = [offset for offset in self._offsets if offset not in bases]
        if strays and (strays[-1] >= top):
            strays.pop()
        await self.remove(strays)

    async def mark_deleted(self, offset: int) -> str | None:
        """Rename the snapshot of a segment that is being deleted; returns the new path, or None if there was no snapshot."""
        if offset not in self._offsets:
            return None
        path = self.path(offset)
        self._forget(offset)
        try:
            await self._disk.rename(path, path + DELETED_SUFFIX)
        except FileNotFoundError:
            return None
        return path + DELETED_SUFFIX

    def _list(self, names: Iterable[str] | None) -> list[int]:
        if names is None:
            if not self._disk.is_directory(self._folder):
                return []
            names = self._disk.list_directory(self._folder)
        parsed = (parse_segment_file_name(name) for name in names if name.endswith(SNAPSHOT_SUFFIX))
        return sorted(name.base_offset for name in parsed if name is not None)

    def _remember(self, offset: int) -> None:
        if offset not in self._offsets:
            self._offsets.append(offset)
            self._offsets.sort()
        self._offset_taken = offset

    def _forget(self, offset: int) -> None:
        self._offsets = [other for other in self._offsets if other != offset]
