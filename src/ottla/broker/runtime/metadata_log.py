"""The metadata log on disk: `__cluster_metadata-0` in metadata.log.dir, a partition log like any other, and its snapshots.

Owns that folder. Records are appended as changes: all records of a change reach the log or none, in one batch if they fit, else
between the begin and the end record of a metadata transaction. Only a change that need not be atomic may take several batches
without one. Appended records are in the page cache; they are durable, and may be committed, when `sync` has returned.

`sync` syncs the records and nothing else, because indexes and leader epochs can be rebuilt from them. A start therefore checks
every batch from the newest snapshot on and rebuilds the rest. The log below was flushed before the snapshot was written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ottla.broker.runtime.snapshots import SnapshotStore
from ottla.config.topic import LogConfig
from ottla.env import Disk, OpenMode
from ottla.errors import BrokenInvariant, CorruptFile, CorruptRecords, DecodeError, KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import METADATA_TOPIC_ID, TopicPartition
from ottla.log.directories.clean_shutdown import read_clean_shutdown, remove_clean_shutdown
from ottla.log.directories.partition_metadata import read_partition_metadata, write_partition_metadata
from ottla.log.names import (
    CLEAN_SHUTDOWN,
    CLUSTER_METADATA_TOPIC,
    LOG_SUFFIX,
    folder_name,
    parse_segment_file_name,
    segment_file_name,
)
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.recovery.log_loader import load_log
from ottla.log.retention import apply_retention
from ottla.log.segments.scan import checked_batches
from ottla.metadata.features import TRANSACTIONS_FROM, record_version
from ottla.raft.snapshots import BATCH_BYTES_MAX, SnapshotId
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.builder import build_batch
from ottla.records.control import ControlRecord, build_control_batch, parse_control
from ottla.records.kernels import Record
from ottla.records.reader import read_records
from ottla.wire.base import Message
from ottla.wire.log_records import decode_metadata_record, encode_metadata_record
from ottla.wire.messages.metadata_records import BeginTransactionRecord, EndTransactionRecord
from ottla.wire.sparing import decoder_if_many

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env import Clock, Disk, World
    from ottla.env.disk import Buffer


PARTITION = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
CHANGE_RECORDS_MAX = 10_000
"""A change of more records than this goes into several batches, within a transaction."""
_BATCH_VALUES_BYTES_MAX = BATCH_BYTES_MAX - (256 << 10)
"""How large the values of a batch may be together; the rest is for headers and lengths."""
_READ_BYTES = 4 << 20
_REMEDY = "Restore the folder from a copy, or from another controller of the quorum"


class MetadataBatch(NamedTuple):
    """One batch of the log: metadata records, or control records of the quorum."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    size_bytes: int
    records: Sequence[Message] = ()
    controls: Sequence[ControlRecord] = ()


class PreparedChange(NamedTuple):
    """A change with its offsets, not appended yet."""

    batches: Sequence[MetadataBatch]
    data: bytearray


def log_config(config: BrokerConfig) -> LogConfig:
    """The settings of the metadata log: no retention, because snapshots decide what is deleted."""
    return LogConfig(
        segment_bytes=config.metadata_log_segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        max_message_bytes=BATCH_BYTES_MAX,
        retention_ms=-1,
        retention_bytes=-1,
    )


class MetadataLog:
    """The open log and its snapshots. `open` creates it."""

    def __init__(self, disk: Disk, clock: Clock, log: PartitionLog, snapshots: SnapshotStore) -> None:
        self._disk = disk
        self._clock = clock
        self._synced_offset = log.recovery_point
        self._synced_name = -1
        """The base offset of the newest segment whose directory entry is durable."""
        self._has_topic_id = _has_topic_id(disk, log.folder)
        self.partition_log = log
        self.snapshots = snapshots

    @classmethod
    async def open(cls, world: World, directory: str, config: LogConfig) -> MetadataLog:
        """Open and recover the log in `directory`. `LogDirectoryFailed` if the disk fails, `CorruptFile` for lost records."""
        disk, clock = world.disk, world.clock
        folder = f"{directory}/{folder_name(PARTITION)}"
        try:
            disk.make_directory(folder)
            snapshots = SnapshotStore(disk, folder)
            latest = snapshots.latest
            first_unsafe_offset = 0 if latest is None else latest.offset
            check_after_clean_stop(disk, directory, folder, first_unsafe_offset)
            await remove_clean_shutdown(disk, directory)  # from the first append on, a torn end means a crash
            log, _ = await load_log(disk, clock, folder, config, LogOptions(), recovery_point=first_unsafe_offset)
            if latest is not None and (latest.offset > log.log_end_offset or latest.epoch > (log.latest_epoch or 0)):
                # A replica was killed after it fetched a snapshot and before it deleted the log below it.
                await log.truncate_fully_and_start_at(latest.offset)
            await snapshots.tidy(log.log_start_offset)
            found = cls(disk, clock, log, snapshots)
        except OSError as error:
            raise LogDirectoryFailed(directory, error) from error
        found._check_start()
        return found

    def _check_start(self) -> None:
        """Raise `CorruptFile` unless a snapshot covers the records before the log's start."""
        start, latest = self.partition_log.log_start_offset, self.snapshots.latest
        if start > 0 and (latest is None or latest.offset < start):
            raise CorruptFile(
                self.partition_log.folder,
                0,
                f"the metadata log starts at offset {start}, and no snapshot has the records before it",
                _REMEDY,
            )

    # -- reading

    @property
    def folder(self) -> str:
        return self.partition_log.folder

    @property
    def end_offset(self) -> int:
        return self.partition_log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the newest record, in the log or in a snapshot."""
        latest = self.snapshots.latest
        return max(self.partition_log.latest_epoch or 0, 0 if latest is None else latest.epoch)

    def batches(self, offset: int) -> Iterator[MetadataBatch]:
        """All batches from the one with `offset` to the log's end; `CorruptFile` for a damaged one."""
        while offset < self.partition_log.log_end_offset:
            found = self.partition_log.read(offset, _READ_BYTES)
            if found.records is None:
                return
            for view in iterate_batches(found.records.read(), allow_cut_end=True):
                if view.next_offset > offset:
                    yield self._read_batch(view, offset)
                    offset = view.next_offset

    def _read_batch(self, view: BatchView, offset: int) -> MetadataBatch:
        try:
            view.check()
            batch = read_batch(view)
        except (CorruptRecords, DecodeError) as damage:
            raise CorruptFile(self.folder, 0, f"the batch with offset {offset}: {damage}", _REMEDY) from damage
        if batch.base_offset >= offset:
            return batch
        # A snapshot ends within the batch: the records it has are left out.
        passed = offset - batch.base_offset
        return batch._replace(base_offset=offset, records=batch.records[passed:], controls=batch.controls[passed:])

    # -- the replica's view (`ottla.raft.log_view.LogView`)

    @property
    def start_offset(self) -> int:
        return self.partition_log.log_start_offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest epoch that is not above `epoch`, and where it ends."""
        found = self.partition_log.end_offset_for_epoch(epoch)
        if found is None:
            return self.last_epoch, self.end_offset
        earliest = self.snapshots.ids[0] if self.snapshots.ids else None
        if earliest is not None and found == (epoch, earliest.offset):
            return earliest.epoch, earliest.offset  # below all epochs of the log: its start is where the snapshot ends
        return found

    def snapshot_ids(self) -> list[SnapshotId]:
        return self.snapshots.ids

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return self.snapshots.size_bytes(snapshot_id) if snapshot_id in self.snapshots.ids else None

    def controls(self, offset: int) -> Iterator[tuple[int, ControlRecord]]:
        """The control records from `offset` on, with their offsets. Other batches are not decoded."""
        while offset < self.partition_log.log_end_offset:
            found = self.partition_log.read(offset, _READ_BYTES)
            if found.records is None:
                return
            for view in iterate_batches(found.records.read(), allow_cut_end=True):
                if view.next_offset > offset and view.is_control:
                    batch = self._read_batch(view, offset)
                    yield from enumerate(batch.controls, start=batch.base_offset)
                offset = max(offset, view.next_offset)

    # -- following a leader

    def append_fetched(self, data: Buffer, epoch: int) -> list[MetadataBatch]:
        """Append batches that were fetched from the leader of `epoch`; returns them decoded.

        Leaves out a cut last batch, and all from a batch of a later epoch on. `CorruptRecords` or `DecodeError` if damaged.
        """
        end_offset = self.end_offset
        batches: list[MetadataBatch] = []
        for view in iterate_batches(data, allow_cut_end=True):
            if view.base_offset != end_offset or view.leader_epoch > epoch:
                break
            view.check()
            batches.append(read_batch(view))
            end_offset = view.next_offset
        self.partition_log.append_as_follower(data, epoch)
        return [batch for batch in batches if batch.last_offset < self.end_offset]

    async def truncate(self, offset: int) -> None:
        """Remove the records from `offset` on, durably."""
        await self.partition_log.truncate_to(offset)
        self._synced_offset = min(self._synced_offset, self.end_offset)

    async def start_at(self, snapshot_id: SnapshotId) -> None:
        """Let the log begin, empty, after a snapshot that was fetched."""
        await self.partition_log.truncate_fully_and_start_at(snapshot_id.offset)
        self._synced_offset, self._synced_name = self.end_offset, -1
        try:
            await self._disk.sync_directory(self.folder)
            await self.snapshots.delete_before(snapshot_id)
        except OSError as error:
            raise self.partition_log.fail(error) from error

    # -- appending

    def append_controls(self, controls: Sequence[ControlRecord], epoch: int) -> MetadataBatch:
        """Append control records of the leader of `epoch`."""
        base_offset, now_ms = self.end_offset, self._clock.now_ms()
        data = build_control_batch(list(controls), base_offset=base_offset, timestamp_ms=now_ms, leader_epoch=epoch)
        self.partition_log.append_as_leader(data, epoch, AppendOrigin.RAFT_LEADER)
        return MetadataBatch(base_offset, base_offset + len(controls) - 1, epoch, now_ms, len(data), controls=tuple(controls))

    def prepare(self, records: Sequence[Message], metadata_version: int, epoch: int, is_atomic: bool = True) -> PreparedChange:
        """Encode one change for the current log end; raises a `KafkaError` if it is too large for one change.

        Without `is_atomic` no change is too large: where metadata.version has no transactions, a crash may leave a part of it.
        """
        values = [encode_metadata_record(record, record_version(record, metadata_version)) for record in records]
        parts = list(_parts(records, values))
        if len(parts) > 1 and (is_atomic or metadata_version >= TRANSACTIONS_FROM):
            if metadata_version < TRANSACTIONS_FROM:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"a change of {len(records)} records needs a metadata transaction, which metadata.version "
                    f"{metadata_version} does not have: make the change in smaller parts, or raise metadata.version",
                )
            begin, end = BeginTransactionRecord(), EndTransactionRecord()
            parts = [
                ([begin], [encode_metadata_record(begin, 0)]),
                *parts,
                ([end], [encode_metadata_record(end, 0)]),
            ]
        return self._build(parts, epoch)

    def _build(self, parts: Sequence[tuple[Sequence[Message], Sequence[bytes]]], epoch: int) -> PreparedChange:
        offset, now_ms = self.end_offset, self._clock.now_ms()
        batches: list[MetadataBatch] = []
        data = bytearray()
        for records, values in parts:
            rows = [Record(offset + index, now_ms, None, value) for index, value in enumerate(values)]
            batch = build_batch(rows, leader_epoch=epoch)
            batches.append(MetadataBatch(offset, offset + len(rows) - 1, epoch, now_ms, len(batch), records))
            data += batch
            offset += len(rows)
        return PreparedChange(batches, data)

    def append(self, change: PreparedChange) -> None:
        """Append a prepared change; nothing else may have been appended since it was prepared."""
        first = change.batches[0]
        if first.base_offset != self.end_offset:
            raise BrokenInvariant(f"a change for offset {first.base_offset} comes too late: the log ends at {self.end_offset}")
        self.partition_log.append_as_leader(change.data, first.epoch, AppendOrigin.RAFT_LEADER)

    async def sync(self) -> int:
        """Make all records appended so far durable; returns their end offset. Only one call at a time."""
        log = self.partition_log
        while True:
            log.check_usable()
            target, truncations, newest = log.log_end_offset, log.truncations, log.segments.active.base_offset
            syncs = [segment.file.sync() for segment in log.segments.between(max(0, self._synced_offset - 1), target)]
            if newest != self._synced_name:
                syncs.append(self._disk.sync_directory(self.folder))
            try:
                await asyncio.gather(*syncs)
            except OSError as error:
                raise log.fail(error) from error
            log.check_usable()
            if truncations == log.truncations:
                break  # else other records may lie where those were that have been synced
        self._synced_offset, self._synced_name = target, newest
        return target

    async def write_topic_id(self) -> None:
        """Write the folder's partition.metadata, unless it exists."""
        if not self._has_topic_id:
            await write_partition_metadata(self._disk, self.folder, METADATA_TOPIC_ID)
            self._has_topic_id = True

    def committed(self, high_watermark: int) -> None:
        """Everything below `high_watermark` is committed."""
        self.partition_log.increment_high_watermark(high_watermark)

    # -- upkeep

    async def delete_before(self, snapshot_id: SnapshotId) -> None:
        """Let the log start at a snapshot: delete older segments and snapshots."""
        self.partition_log.delete_records(snapshot_id.offset)
        # With the log's start, before anything is awaited: a follower that is just there would have to load a snapshot.
        doomed = self.snapshots.forget_before(snapshot_id)
        await apply_retention(self.partition_log, self._clock.now_ms())
        try:
            await self.snapshots.remove(doomed)
        except OSError as error:
            raise self.partition_log.fail(error) from error

    async def close(self) -> None:
        """Flush and close; nothing works afterwards."""
        await self.partition_log.close()


def read_batch(view: BatchView) -> MetadataBatch:
    """Decode a batch of the log whose CRC was checked."""
    place = (view.base_offset, view.last_offset, view.leader_epoch, view.max_timestamp, view.size)
    if view.is_control:
        return MetadataBatch(*place, controls=[parse_control(record) for record in read_records(view)])
    return MetadataBatch(*place, records=[_decode(record.value or b"") for record in read_records(view)])


_decoders: dict[bytes, Callable[..., tuple[Message, int]]] = {}
"""First three bytes of a record's value → decoder: a start reads very many records of few types."""


def _decode(value: bytes) -> Message:
    decode = _decoders.get(value[:3])
    if decode is not None:
        message, end = decode(value, 3)
        if end == len(value):
            return message
    found = decode_metadata_record(value)  # one of the first of its type, or one that must be refused
    compiled = decoder_if_many(type(found.message), found.version)
    if compiled is not None and max(value[:3]) < 0x80:  # each of the three numbers has one byte
        _decoders[value[:3]] = compiled
    return cast(Message, found.message)


def _parts(records: Sequence[Message], values: Sequence[bytes]) -> Iterator[tuple[Sequence[Message], Sequence[bytes]]]:
    """Split a change into parts that fit into one batch each."""
    start, size_bytes = 0, 0
    for index, value in enumerate(values):
        if index - start == CHANGE_RECORDS_MAX or (index > start and size_bytes + len(value) > _BATCH_VALUES_BYTES_MAX):
            yield records[start:index], values[start:index]
            start, size_bytes = index, 0
        size_bytes += len(value) + 24  # the most that the fields around a value take
    yield records[start:], values[start:]


def _has_topic_id(disk: Disk, folder: str) -> bool:
    found = read_partition_metadata(disk, folder)
    if found is not None and found != METADATA_TOPIC_ID:
        raise CorruptFile(
            f"{folder}/partition.metadata", 0, "the topic id is not that of the metadata log", "Restore the folder from a copy"
        )
    return found is not None


def check_after_clean_stop(disk: Disk, directory: str, folder: str, snapshot_offset: int) -> None:
    """Raise `CorruptFile` if the shutdown was clean and the log in `folder` is not whole from its snapshot on."""
    if read_clean_shutdown(disk, directory) is None:
        return
    remedy = (
        "Restore the folder from a copy; or, if the changes from there on may be lost, remove "
        f"{directory}/{CLEAN_SHUTDOWN} and start again"
    )
    is_empty = snapshot_offset == 0
    for path in _segments_from(disk, folder, snapshot_offset):
        file = disk.open(path, OpenMode.READ)
        try:
            for _ in checked_batches(file, 0, file.size):
                is_empty = False
        except CorruptRecords as damage:
            raise CorruptFile(
                path,
                damage.position,
                f"the node was shut down cleanly, but its metadata log is damaged here: {damage}",
                remedy,
            ) from None
        finally:
            file.close()
    if is_empty:
        raise CorruptFile(
            folder,
            0,
            "the node was shut down cleanly, but its metadata log is empty: all topics would be lost",
            remedy,
        )


def _segments_from(disk: Disk, folder: str, offset: int) -> Iterator[str]:
    """The log files that have records at or after `offset`, in order."""
    parsed = (parse_segment_file_name(name) for name in disk.list_directory(folder))
    bases = sorted(each.base_offset for each in parsed if each is not None and each.suffix == LOG_SUFFIX and not each.state)
    first = max((base for base in bases if base <= offset), default=0)
    return (f"{folder}/{segment_file_name(base, LOG_SUFFIX)}" for base in bases if base >= first)
