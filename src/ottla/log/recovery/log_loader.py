"""Opening the log of a partition: repairs leftovers, recovers what may be torn, and reports both.

After a clean shutdown only the last batches are checked. After an unclean one, every batch from the segment with the recovery
point on is checked, and a torn batch is cut off together with everything after it. The steps, each relying on the ones before:
files, segments, indexes, records, log start and end, leader epochs, producers.

`load_log` reads and checks on the event loop, so large logs are recovered in a helper process first: `recover_folder` is that
job. It leaves the folder as a clean shutdown would, so that the node's own load is short.
"""

import logging
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ottla.config.topic import LogConfig
from ottla.env import Clock, Disk, HelperWorld
from ottla.errors import CorruptFile, CorruptRecords, KafkaError, LogDirectoryFailed
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_folder_name,
    segment_bases,
    segment_file_name,
)
from ottla.log.partition_log import LogOptions, LogParts, PartitionLog
from ottla.log.producers.producer_recovery import rebuild_producers, replay_batch
from ottla.log.producers.producer_snapshot import ProducerSnapshots
from ottla.log.producers.producer_state import ProducerState
from ottla.log.recovery.folder_repair import needs_repair, repair_folder
from ottla.log.recovery.vacant import holds_no_record, vacant_log
from ottla.log.segments.deletion import PendingDeletion
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX
from ottla.log.segments.scan import checked_batches, damage, find_offset, headers
from ottla.log.segments.segment import Segment, SegmentOverflow
from ottla.log.segments.segment_list import Segments
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.batch import BatchView

logger = logging.getLogger("ottla.log")


@dataclass(slots=True)
class LoadReport:
    """What loading found and did: numbers, and notes for the operator."""

    log_start_offset: int = 0
    log_end_offset: int = 0
    recovery_point: int = 0
    bytes_cut: int = 0
    segments_recovered: int = 0
    segments_removed: int = 0
    gap_offset: int | None = None
    """See `PartitionLog.gap_offset`."""
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


async def load_log(
    disk: Disk,
    clock: Clock,
    folder: str,
    config: LogConfig,
    options: LogOptions | None = None,
    *,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean_shutdown: bool = False,
) -> tuple[PartitionLog, LoadReport]:
    """Open the log in `folder`, which is created if missing. `recovery_point` and `log_start_offset` are from checkpoints.

    `LogDirectoryFailed` if the disk fails; `CorruptFile` for damage that recovery cannot repair without losing records.
    """
    loader = _Loader(disk, clock, folder, config, options or LogOptions(), recovery_point, log_start_offset, clean_shutdown)
    try:
        log = await loader.load()
    except OSError as error:
        raise LogDirectoryFailed(folder.rpartition("/")[0], error) from error
    for note in loader.report.notes:
        logger.warning("%s: %s", log.partition, note)
    return log, loader.report


async def recover_folder(
    disk: Disk,
    clock: Clock,
    folder: str,
    config: LogConfig,
    options: LogOptions | None = None,
    *,
    recovery_point: int = 0,
    log_start_offset: int = 0,
) -> LoadReport:
    """Recover the log in `folder` and leave it as a clean shutdown would, everything flushed.

    The owner then loads it with `clean_shutdown=True`, the report's recovery point and its log start offset.
    """
    log, report = await load_log(
        disk, clock, folder, config, options, recovery_point=recovery_point, log_start_offset=log_start_offset
    )
    await log.close()
    report.recovery_point = log.recovery_point
    return report


def bytes_to_recover(disk: Disk, folder: str, recovery_point: int) -> int:
    """How many bytes recovery would read; decides whether it runs in a helper process."""
    names = disk.list_files(folder)
    bases = segment_bases(names)
    floor = max((base for base in bases if base <= recovery_point), default=0)
    return sum(names[segment_file_name(base, LOG_SUFFIX)] for base in bases if base >= floor)


class _Loader:
    """The steps of one load, and their shared state."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        folder: str,
        config: LogConfig,
        options: LogOptions,
        recovery_point: int,
        log_start_offset: int,
        clean_shutdown: bool,
    ) -> None:
        self.disk = disk
        self.clock = clock
        self.folder = folder
        self.config = config
        self.options = options
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset
        self.clean_shutdown = clean_shutdown
        self.partition = parse_folder_name(folder.rpartition("/")[2]).partition
        self.report = LoadReport()
        self.names: dict[str, int] = {}
        """The files of the folder and their sizes, as they were when the load began."""
        self.is_untouched = clean_shutdown
        """Whether everything is as a clean shutdown left it: durable, names included, and the snapshots as listed."""
        self.segments = Segments()
        self.pending: list[PendingDeletion] = []

    def note(self, text: str) -> None:
        self.is_untouched = False
        self.report.notes.append(text)

    async def load(self) -> PartitionLog:
        try:
            self.names = self.disk.list_files(self.folder)
        except FileNotFoundError:
            self.disk.make_directory(self.folder)
        if self.clean_shutdown and not self.log_start_offset and holds_no_record(self.names):
            return vacant_log(self.disk, self.clock, self.folder, self.config, self.options)
        if needs_repair(self.names):
            self.report.notes.extend(await repair_folder(self.disk, self.folder, self.config, self.clock.now_ms()))
            self.names = self.disk.list_files(self.folder)
        while True:
            try:
                self.snapshots = ProducerSnapshots(self.disk, self.folder, self.names)
                self._open_segments()
                self.epochs = self._load_epochs()
                await self._repair_indexes()
                end_offset = await self._recover()
                break
            except SegmentOverflow as overflow:
                self.note(f"split {overflow.segment.file.path}: {overflow}")
                await split_overflowed(overflow.segment, self.config, self.clock.now_ms())
                for segment in self.segments:
                    segment.abandon()
                self.names = self.disk.list_files(self.folder)
        end_offset = await self._settle_ends(end_offset)
        return await self._finish(end_offset)

    def _new_segment(self, base_offset: int) -> Segment:
        self.is_untouched = False
        return Segment.create(self.disk, self.folder, base_offset, self.config, now_ms=self.clock.now_ms())

    def _open_segments(self) -> None:
        now_ms = self.clock.now_ms()
        self.segments = Segments(
            Segment(
                self.disk,
                self.folder,
                base,
                self.config,
                now_ms=now_ms,
                known_size=self.names[segment_file_name(base, LOG_SUFFIX)],
                is_durable=self.clean_shutdown,
                has_txn_index=segment_file_name(base, TXN_INDEX_SUFFIX) in self.names,
            )
            for base in segment_bases(self.names)
        )

    def _unflushed(self) -> list[Segment]:
        """The segments that recovery will check completely."""
        return [] if self.clean_shutdown else self.segments.all_from(self.recovery_point)

    def _load_epochs(self) -> LeaderEpochs:
        """The epochs from their checkpoint, or from the batches if it is missing or damaged."""
        unflushed = self._unflushed()
        flushed = [segment for segment in self.segments if segment.size and segment not in unflushed]
        try:
            has_file = LEADER_EPOCH_CHECKPOINT in self.names
            epochs = LeaderEpochs.load(self.disk, self.folder) if has_file else LeaderEpochs(self.disk, self.folder)
            if epochs.entries or not flushed or self._first_epoch(flushed[0]) < 0:
                self._complete_first_epochs(epochs, flushed)
                return epochs  # recovery reads those of unflushed segments from the batches
            self.note(f"{epochs.path} is missing or empty: the epochs were read from the batches")
        except CorruptFile as damage:
            self.note(f"{damage}. That was done now")
            epochs = LeaderEpochs(self.disk, self.folder)
        for segment in flushed:
            try:
                for _, view in headers(segment.file, 0, segment.size):
                    note_epoch(epochs, view)
            except CorruptFile:
                if segment is not self.segments.active:
                    raise  # a torn end of the last segment is cut by recovery; the epochs before it are read
        return epochs

    def _complete_first_epochs(self, epochs: LeaderEpochs, flushed: list[Segment]) -> None:
        """Read the epochs of the batches before the first known one.

        A kill undoes a log start that was not checkpointed, but the epochs before it are not in their checkpoint any more. A
        leader without them would not tell a replica to truncate what it has of them.
        """
        known = epochs.entries
        if self.clean_shutdown or not known or known[0][1] <= self.log_start_offset:
            return
        known_from = known[0][1]
        epochs.clear()
        try:
            for segment in flushed:
                if segment.base_offset >= known_from:
                    break
                place = find_offset(segment.file, self.log_start_offset, 0, segment.size)
                for _, view in headers(segment.file, place.position if place else segment.size, segment.size):
                    if view.base_offset >= known_from:
                        break
                    if view.leader_epoch >= 0:
                        epochs.assign(view.leader_epoch, view.base_offset)
        except CorruptFile as damage:
            self.note(f"not all leader epochs before offset {known_from} are known: {damage}")
        for epoch, start_offset in known:
            epochs.assign(epoch, start_offset)

    @staticmethod
    def _first_epoch(segment: Segment) -> int:
        for _, view in headers(segment.file, 0, segment.size, chunk_bytes=256):
            return view.leader_epoch
        return -1

    async def _repair_indexes(self) -> None:
        """Rebuild missing and damaged indexes of segments that recovery will not check."""
        unflushed = self._unflushed()
        for segment in self.segments:
            if segment in unflushed:
                continue
            missing = [
                suffix
                for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
                if segment_file_name(segment.base_offset, suffix) not in self.names
            ]
            if missing:
                self.note(f"{segment.path(LOG_SUFFIX)} had no {' and no '.join(missing)}: rebuilt")
                segment.rebuild_indexes()
                await segment.sync()
            try:
                segment.txn_index.load()
            except CorruptIndex as damage:
                self.note(f"{damage}")
                await self._rebuild_txn_index(segment)

    async def _rebuild_txn_index(self, segment: Segment) -> None:
        self.is_untouched = False
        producers = await self._producers_at(segment.base_offset)
        recovered = recover_segment(segment, producers, self.epochs)
        if recovered.bytes_cut:
            self._note_cut(segment, recovered.bytes_cut, recovered.reason)
        await segment.sync()

    async def _producers_at(self, offset: int) -> ProducerState:
        return await rebuild_producers(
            self.segments,
            ProducerSnapshots(self.disk, self.folder),
            partition=str(self.partition),
            # -1: a snapshot at the first segment's base offset is complete; an older one misses the deleted records after it.
            log_start_offset=max(self.log_start_offset, self.segments.first.base_offset - 1),
            end_offset=offset,
            now_ms=self.clock.now_ms(),
            expiration_ms=self.options.producer_expiration_ms,
        )

    async def _recover(self) -> int | None:
        """Check what may be torn; returns the log end offset, or None if there are no segments."""
        if not len(self.segments):
            return None
        if self.clean_shutdown:
            end_offset = self._clean_end_offset()
            if end_offset is not None:
                return end_offset
        return await self._recover_from(self.segments.active.base_offset if self.clean_shutdown else self.recovery_point)

    async def _recover_from(self, offset: int) -> int:
        self.is_untouched = False
        unflushed = self.segments.all_from(offset)
        producers = await self._producers_at(unflushed[0].base_offset)
        ends: list[tuple[Segment, int]] = []
        for number, segment in enumerate(unflushed):
            producers.advance(max(producers.map_end_offset, segment.base_offset))
            recovered = recover_segment(segment, producers, self.epochs)
            self.report.segments_recovered += 1
            end_offset = recovered.next_offset
            ends.append((segment, end_offset))
            ProducerSnapshots(self.disk, self.folder).write(producers)
            after = unflushed[number + 1 :]
            if recovered.bytes_cut:
                self._note_cut(segment, recovered.bytes_cut, recovered.reason)
                await self._retire(after, f"it follows the damage in {segment.path(LOG_SUFFIX)}")
                break
            if after and end_offset < after[0].base_offset:
                # Compaction leaves such a gap, and a power loss may. The segments after it are whole and stay
                # (docs/decisions/0003); a follower fetches them again.
                if self.report.gap_offset is None:
                    self.report.gap_offset = end_offset
                if not self.config.compact:
                    self.note(
                        f"offsets {end_offset} up to {after[0].base_offset - 1} are in no segment: they were compacted away, "
                        "or a power loss took them before they were flushed"
                    )
        end_offset = await self._close_last_gaps(ends, offset)
        # Make the cut durable, also that of a truncation that was killed: a power loss must not bring back records, or entries
        # of the transaction index.
        await self.segments.active.sync()
        return end_offset

    async def _close_last_gaps(self, ends: list[tuple[Segment, int]], recovery_point: int) -> int:
        """End the log at a gap of records that were never flushed if nothing follows it; returns the log end offset.

        `ends` are the recovered segments and where each ends. A leader with the higher end could give its followers no record
        up to there: they would never be in sync, and with min.insync.replicas nobody could write to it again.
        """
        while len(ends) > 1:
            (last, _), (_, gap_offset) = ends[-1], ends[-2]
            if last.size or not recovery_point <= gap_offset < last.base_offset:
                break
            await self._retire([last], f"it is empty, and the records from {gap_offset} on, before it, are lost")
            if self.report.gap_offset == gap_offset:  # the first gap of the log
                self.report.gap_offset = None
            ends.pop()
        return ends[-1][1]

    def _note_cut(self, segment: Segment, bytes_cut: int, reason: str) -> None:
        self.report.bytes_cut += bytes_cut
        self.note(f"cut {bytes_cut} bytes off {segment.path(LOG_SUFFIX)} at byte {segment.size}: {reason}")

    def _clean_end_offset(self) -> int | None:
        """The log end offset after a clean shutdown; None if the last batches are damaged nevertheless."""
        active = self.segments.active
        try:
            active.activate()
            end_offset = active.base_offset
            place = active.find(active.offset_index.last_offset)
            for _, view in checked_batches(active.file, place.position if place else 0, active.size):
                end_offset = view.next_offset
            return end_offset
        except (CorruptFile, CorruptRecords) as damage:
            self.note(f"the shutdown was clean, but the log's end is not, so it is recovered: {damage}")
            return None

    async def _retire(self, segments: list[Segment], why: str) -> None:
        for segment in reversed(segments):
            self.segments.remove(segment)
            self.note(f"removed segment {segment.base_offset} ({segment.size} bytes): {why}")
            await segment.change_state(DELETED_SUFFIX)
            deadline_s = self.clock.monotonic_s() + self.config.file_delete_delay_ms / 1000
            snapshot_path = await ProducerSnapshots(self.disk, self.folder).mark_deleted(segment.base_offset)
            self.pending.append(PendingDeletion(deadline_s, segment, snapshot_path))
            self.report.segments_removed += 1

    async def _settle_ends(self, end_offset: int | None) -> int:
        """Make log start, log end and segments consistent; returns the log end offset."""
        if end_offset is not None and end_offset < self.log_start_offset:
            await self._retire(list(self.segments), f"the log ends at {end_offset}, before its start {self.log_start_offset}")
            self.epochs.clear()
            end_offset = None
        if end_offset is None:
            self.segments.add(self._new_segment(self.log_start_offset))
            end_offset = self.log_start_offset
            self.recovery_point = min(self.recovery_point, end_offset)
        elif self.clean_shutdown and not self.report.bytes_cut:
            self.recovery_point = end_offset
        self.recovery_point = min(self.recovery_point, end_offset)
        self.log_start_offset = max(self.log_start_offset, self.segments.first.base_offset)
        self.epochs.truncate_from_end(end_offset)
        self.epochs.truncate_from_start(self.log_start_offset)
        return end_offset

    async def _finish(self, end_offset: int) -> PartitionLog:
        self.segments.active.activate()
        if not self.is_untouched:
            self.snapshots = ProducerSnapshots(self.disk, self.folder)
        await self.snapshots.remove_stray(self.segments.base_offsets)
        producers = await rebuild_producers(
            self.segments,
            self.snapshots,
            partition=str(self.partition),
            log_start_offset=self.log_start_offset,
            end_offset=end_offset,
            now_ms=self.clock.now_ms(),
            expiration_ms=self.options.producer_expiration_ms,
        )
        parts = LogParts(
            self.segments, self.epochs, producers, self.snapshots, self.log_start_offset, end_offset, self.recovery_point
        )
        log = PartitionLog(self.disk, self.clock, self.folder, self.partition, self.config, self.options, parts)
        log.pending_deletions = self.pending
        log.gap_offset = self.report.gap_offset
        # The shutdown of a log without records syncs no names (`close_all`).
        log.names_unsynced = not self.is_untouched or end_offset == 0
        report = self.report
        report.log_start_offset, report.log_end_offset, report.recovery_point = (
            log.log_start_offset,
            end_offset,
            self.recovery_point,
        )
        return log


# Recovering one segment after an unclean shutdown: checks every batch and rebuilds the indexes.
#
# A torn or damaged batch is cut off, with everything after it, since recovery cannot know which records belong after a gap.
# Batches of the formats before magic 2 are not damage: they raise an error, since cutting them off would lose whole records.

OLD_MESSAGE_OVERHEAD = 12
OLD_MESSAGE_SIZE_MIN = 14


class Recovered(NamedTuple):
    """The result of the recovery of a segment."""

    next_offset: int
    bytes_cut: int
    reason: str
    """Why bytes were cut off; empty if none were."""


def recover_segment(segment: Segment, producers: ProducerState, epochs: LeaderEpochs) -> Recovered:
    """Check every batch, cut damage off, and rebuild indexes, epochs and producers from what is left.

    `producers` must be the state at the segment's base offset; afterwards it is the state at its end.
    """
    file = segment.file
    segment.begin_rebuild()
    segment.txn_index.reset()
    valid, next_offset, reason = 0, segment.base_offset, ""
    try:
        for position, view in checked_batches(file, 0, file.size):
            _check_offsets(view, next_offset, position)
            for ended in replay_batch(producers, view):
                if ended.aborted:
                    segment.txn_index.append(
                        AbortedTxn(ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)
                    )
            segment.index_batch(position, view)
            note_epoch(epochs, view)
            valid, next_offset = position + view.size, view.next_offset
    except (CorruptRecords, KafkaError) as error:
        _refuse_old_format(segment, valid)
        reason = str(error)
    cut = file.size - valid
    if cut:
        file.truncate(valid)
    segment.finish()
    return Recovered(next_offset, cut, reason)


def note_epoch(epochs: LeaderEpochs, view: BatchView) -> None:
    """Make `epochs` agree with the epoch of a batch.

    The checkpoint may have entries of records that a truncation or a power loss removed. Where it contradicts a batch, its
    entries from there on are dropped. It is no contradiction if its first entry, or the entry of the batch's own epoch, begins
    after the batch: the checkpoint was cut at a log start that a crash then undid. In that case later entries are kept, since
    compaction may have left no batch of those epochs. Entries added here for batches before the log start are removed once the
    start is known.
    """
    epoch, offset = view.leader_epoch, view.base_offset
    known = epochs.epoch_for(offset)
    if epoch < 0 or known == epoch:
        return
    later = [entry for entry in epochs.entries if entry[1] > offset and entry[0] >= epoch]
    if known is not None and (not later or later[0][0] != epoch):
        later = []
    epochs.truncate_from_end(offset)
    epochs.assign(epoch, offset)
    for later_epoch, start_offset in later:
        epochs.assign(later_epoch, start_offset)


def _check_offsets(view: BatchView, next_offset: int, position: int) -> None:
    if view.base_offset < next_offset or view.last_offset_delta < 0:
        raise CorruptRecords(f"the batch begins at offset {view.base_offset}, where {next_offset} or more was due", position)


def _refuse_old_format(segment: Segment, position: int) -> None:
    """`CorruptFile` if there is a whole message of magic 0 or 1 at `position`, rather than damage."""
    head = segment.file.read(position, OLD_MESSAGE_OVERHEAD + 5)
    if len(head) < OLD_MESSAGE_OVERHEAD + 5 or head[16] > 1:
        return
    size = int.from_bytes(head[8:12], "big", signed=True)
    if not OLD_MESSAGE_SIZE_MIN <= size <= segment.size - position - OLD_MESSAGE_OVERHEAD:
        return
    body = segment.file.read(position + OLD_MESSAGE_OVERHEAD, size)
    if zlib.crc32(body[4:]) == int.from_bytes(body[:4], "big"):
        raise CorruptFile(
            segment.file.path,
            position,
            f"a message of the old format (magic {head[16]}) begins here, which Kafka 4 no longer writes",
            "Copy the topic with a Kafka 3 broker, which converts it, or move the folder away",
        )


# Splitting a segment that spans more offsets than its indexes can name.
#
# Kafka before 1.1 could write such segments. The parts are written as `.cleaned`, synced, and swapped in like the segments of a
# compaction, so a kill at any point leaves either the old segment or all of the parts.

COPY_CHUNK_BYTES = 1 << 20


async def split_overflowed(segment: Segment, config: LogConfig, now_ms: int) -> None:
    """Replace the files of `segment` by those of several segments. The caller must then reopen the log's segments.

    `CorruptFile` if its offsets do not rise: then the file is damaged, and this is not a segment of an old Kafka.
    """
    parts: list[tuple[int, int]] = []
    """(base offset, first position)"""
    next_offset = segment.base_offset
    for position, view in headers(segment.file, 0, segment.size):
        if view.base_offset < next_offset:
            raise damage(segment.file, position, f"offset {view.base_offset} comes where {next_offset} or more was due")
        next_offset = view.next_offset
        if not parts:
            parts.append((segment.base_offset, position))
        if view.last_offset - parts[-1][0] > RELATIVE_OFFSET_MAX:
            parts.append((view.base_offset, position))
    new = []
    for number, (base_offset, start) in enumerate(parts):
        end = parts[number + 1][1] if number + 1 < len(parts) else segment.size
        part = Segment.create(segment.disk, segment.folder, base_offset, config, now_ms=now_ms, state=CLEANED_SUFFIX)
        for position in range(start, end, COPY_CHUNK_BYTES):
            part.file.append(segment.file.read(position, min(COPY_CHUNK_BYTES, end - position)))
        part.rebuild_indexes()
        await part.sync()
        part.close()
        new.append(part)
    await segment.disk.sync_directory(segment.folder)
    for part in reversed(new):
        await part.change_state(SWAP_SUFFIX)
    await segment.change_state(DELETED_SUFFIX)
    for part in new:
        await part.change_state("")


# The helper process's side of recovering a large log: it leaves the folder as a clean shutdown would.
#
# No other process may have the log open during the job. The job is what `recovery_job` returns; the result is a `LoadReport`.

MODULE = "ottla.log.recovery.log_loader"


def recovery_job(
    folder: str, config: LogConfig, options: LogOptions, recovery_point: int, log_start_offset: int
) -> dict[str, object]:
    """The job of recovering the log in `folder`."""
    return {
        "folder": folder,
        "config": config.to_json(),
        "producer_expiration_ms": options.producer_expiration_ms,
        "recovery_point": recovery_point,
        "log_start_offset": log_start_offset,
    }


async def run_job(job: Mapping[str, Any], world: HelperWorld) -> dict[str, object]:
    """Recover the log."""
    report = await recover_folder(
        world.disk,
        world.clock,
        job["folder"],
        LogConfig.from_json(job["config"]),
        LogOptions(producer_expiration_ms=job["producer_expiration_ms"]),
        recovery_point=job["recovery_point"],
        log_start_offset=job["log_start_offset"],
    )
    return report.as_json()


class RecoveredElsewhere(NamedTuple):
    """The result of a finished job, as far as the node needs it to load the log."""

    recovery_point: int
    log_start_offset: int
    gap_offset: int | None
    notes: list[str]

    @classmethod
    def from_json(cls, report: Mapping[str, Any]) -> "RecoveredElsewhere":
        return cls(report["recovery_point"], report["log_start_offset"], report["gap_offset"], report["notes"])
