"""One pass of compaction over one log: reads old segments, writes `.cleaned` ones, reports each as it is done.

First it reads the dirty part and puts the last offset of every key into the map, until the end or until the map is full; the
pass cleans only as far as the map reaches, and the next pass continues there. Then it reads every segment from the log start
again and writes the records to keep.

Runs in a helper process for large logs, and on the event loop, in slices, for small ones (`run_job`, `compactor.py`). It uses
clock and disk only through `HelperWorld`, and yields to other tasks after every slice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from ottla.env import HelperWorld, OpenMode
from ottla.errors import CorruptFile, CorruptRecords, OttlaError
from ottla.log.compaction.offset_map import OffsetMap, memory_for
from ottla.log.compaction.plan import CleanedGroup, CompactionPlan, CompactionStats, LastRecord, SegmentPlan, group_segments
from ottla.log.names import CLEANED_SUFFIX, LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file_name
from ottla.log.segments.scan import REMEDY, checked_batches, find_offset
from ottla.log.segments.segment import Segment
from ottla.log.segments.txn_index import AbortedTxn, TxnIndex
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import ExpandsTooFar
from ottla.records.control import ControlType, parse_control_type
from ottla.records.kernels import plain_bytes_max
from ottla.records.layout import CODEC_MASK, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from ottla.records.patch import set_crc
from ottla.records.reader import DECOMPRESSED_BYTES_MAX, read_records
from ottla.records.record import Record

SLICE_BYTES = 64 * 1024
SLICE_RECORDS = 256
"""Records per slice: a few milliseconds' work between two yields to other tasks. A slice is written in one go."""
SLICE_WORK_BYTES = 1 << 20
"""What a slice unpacks to, at most, unless it is a single batch."""


class CleaningPass:
    """One pass. `run` does the work; `stats` counts it."""

    def __init__(self, plan: CompactionPlan, world: HelperWorld, unpacked_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> None:
        self._plan = plan
        self._unpacked_bytes_max = unpacked_bytes_max
        self._world = world
        self._throttle = Throttle(world, plan.bytes_per_second)
        needed_bytes = memory_for(plan.dirty_records_max, plan.dedupe_load_factor)
        self._offsets = OffsetMap(min(plan.dedupe_buffer_bytes, needed_bytes), plan.dedupe_load_factor)
        self.stats = CompactionStats()

    async def run(self) -> AsyncGenerator[CleanedGroup, None]:
        """Clean the log; yields each group once its new segment is written and synced."""
        plan, stats = self._plan, self.stats
        await self._build_map()
        stats.end_offset = self._offsets.latest_offset + 1
        stats.keys = self._offsets.count
        stats.map_utilization = self._offsets.utilization
        batches = BatchFilter(
            self._offsets,
            PassedTransactions(plan.aborted),
            plan.producers or {},
            end_of_round=plan.first_uncleanable_offset,
            now_ms=plan.now_ms,
            delete_retention_ms=plan.delete_retention_ms,
            stats=stats,
            unpacked_bytes_max=self._unpacked_bytes_max,
        )
        reached = [segment for segment in plan.segments if segment.base_offset < stats.end_offset]
        for group in group_segments(reached, plan.segment_bytes, plan.segment_index_bytes, plan.first_uncleanable_offset):
            await self._clean(group, batches)
            yield CleanedGroup(group[0].base_offset, [segment.base_offset for segment in group])

    # The map

    async def _build_map(self) -> None:
        plan, offsets = self._plan, self._offsets
        start = plan.first_dirty_offset
        transactions = PassedTransactions(txn for txn in plan.aborted if txn.last_offset >= start)
        segments = plan.segments
        for number, segment in enumerate(segments):
            following = segments[number + 1].base_offset if number + 1 < len(segments) else plan.first_uncleanable_offset
            if following <= start:
                continue
            for slice_of_batches in self._slices(segment, from_offset=start):
                await self._throttle.spend(sum(batch.size for batch in slice_of_batches))
                for batch in slice_of_batches:
                    if not self._map_batch(batch, transactions, start):
                        return
                    offsets.latest_offset = batch.last_offset
            # The segment's last offsets may be missing: an earlier pass removed its last batches.
            offsets.latest_offset = following - 1

    def _map_batch(self, batch: BatchView, transactions: PassedTransactions, start: int) -> bool:
        """Put the keys of a batch into the map; False if the map became full first."""
        if batch.is_control:
            transactions.pass_control(batch)
            return True
        if transactions.pass_data(batch):
            return True
        offsets = self._offsets
        records = unpacked(batch, self._unpacked_bytes_max)
        if isinstance(records, str):
            self.stats.note_unreadable(batch.base_offset, records)
            return True
        for record in records:
            if record.key is not None and record.offset >= start:
                if offsets.is_full:
                    return False
                offsets.put(record.key, record.offset)
        return True

    # Writing

    async def _clean(self, group: Sequence[SegmentPlan], batches: BatchFilter) -> None:
        plan, disk = self._plan, self._world.disk
        cleaned = Segment.create(
            disk, plan.folder, group[0].base_offset, plan.log_config(), now_ms=plan.now_ms, state=CLEANED_SUFFIX
        )
        batches.txn_index = cleaned.txn_index
        try:
            for segment in group:
                for slice_of_batches in self._slices(segment):
                    await self._throttle.spend(sum(batch.size for batch in slice_of_batches))
                    kept = [data for batch in slice_of_batches if (data := batches.filtered(batch)) is not None]
                    await self._write(cleaned, kept)
            cleaned.finish()
            await cleaned.sync()
            await disk.sync_directory(plan.folder)
            modified_ms = disk.modified_ms(self._source_path(group[-1]))
            for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                disk.set_modified_ms(cleaned.path(suffix), modified_ms)
        finally:
            batches.txn_index = None
            cleaned.abandon()

    async def _write(self, cleaned: Segment, kept: list[memoryview | bytearray]) -> None:
        if not kept:
            return
        data = b"".join(kept)
        cleaned.append_batches(data, [BatchView(part) for part in kept])
        self.stats.bytes_written += len(data)
        await self._throttle.spend(len(data))

    # Reading

    def _slices(self, segment: SegmentPlan, from_offset: int = 0) -> Iterator[list[BatchView]]:
        """The batches of a segment that end at or after `from_offset`, a slice at a time, length and CRC checked.

        `CorruptFile` at the first batch whose length or CRC is wrong: what follows it cannot be trusted either.
        """
        file = self._world.disk.open(self._source_path(segment), OpenMode.READ)
        try:
            waiting: list[BatchView] = []
            waiting_bytes = waiting_records = waiting_work = 0
            try:
                place = find_offset(file, from_offset, 0, segment.size_bytes) if from_offset > segment.base_offset else None
                start = place.position if place is not None else 0
                for _, batch in checked_batches(file, start, segment.size_bytes):
                    waiting.append(batch)
                    waiting_bytes += batch.size
                    waiting_records += batch.count
                    waiting_work += work_bytes(batch)
                    if waiting_bytes >= SLICE_BYTES or waiting_records >= SLICE_RECORDS or waiting_work >= SLICE_WORK_BYTES:
                        self.stats.bytes_read += waiting_bytes
                        yield waiting
                        waiting, waiting_bytes, waiting_records, waiting_work = [], 0, 0, 0
                if waiting:
                    self.stats.bytes_read += waiting_bytes
                    yield waiting
            except CorruptRecords as error:
                raise CorruptFile(file.path, max(error.position, 0), str(error), REMEDY) from None
        finally:
            file.close()

    def _source_path(self, segment: SegmentPlan) -> str:
        return f"{self._plan.folder}/{segment_file_name(segment.base_offset, LOG_SUFFIX)}"


# Which records of a batch compaction keeps, decided batch by batch.
#
# A record is kept if the map has no later record with its key. A tombstone (no value) is kept until the batch's delete horizon:
# now + delete.retention.ms, set by the first pass that meets it. Records without a key and all data of aborted transactions are
# dropped. Records past the end of the map are kept, and so is a batch that cannot be read.
#
# A batch keeps its base offset, last offset, leader epoch, producer and sequence, however few records it has left. A batch with
# no records left is dropped, with two exceptions that stay as a bare header: the last batch of an active producer, because it
# holds the producer's sequence, and the last batch of the cleaned part of the log, because it marks where that part ends.
#
# A batch with a delete horizon has attribute bit 6 set, and its base timestamp is the horizon; the records' timestamp deltas
# are rewritten to match.

ATTRIBUTES_OF_EMPTY = 0x38
"""Of a batch left without records, these attributes stay: timestamp type, transactional, control."""
NO_TIMESTAMP = -1


class BatchFilter:
    """The filter of one pass. The caller sets `txn_index` to the index of the segment being written."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: PassedTransactions,
        producers: Mapping[int, LastRecord],
        *,
        end_of_round: int,
        now_ms: int,
        delete_retention_ms: int,
        stats: CompactionStats,
        unpacked_bytes_max: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._producers = producers
        self._end_of_round = end_of_round
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._stats = stats
        self._unpacked_bytes_max = unpacked_bytes_max
        self.txn_index: TxnIndex | None = None

    def filtered(self, batch: BatchView) -> memoryview | bytearray | None:
        """The bytes to write in place of `batch`: its own, a smaller batch, or None if it is dropped."""
        self._stats.records_read += batch.count
        if batch.is_control:
            return self._control(batch)
        if self._transactions.pass_data(batch):
            return self._emptied(batch)
        records = unpacked(batch, self._unpacked_bytes_max)
        if isinstance(records, str):
            self._stats.records_written += batch.count
            return batch.data
        kept = self._kept(batch, records)
        if not kept:
            return self._emptied(batch)
        has_tombstone = any(record.value is None for record in kept)
        return self._written(batch, kept, whole=len(kept) == len(records), needs_horizon=has_tombstone)

    def _control(self, batch: BatchView) -> memoryview | bytearray | None:
        is_unneeded, ended = self._transactions.pass_control(batch)
        if ended is not None and self.txn_index is not None:
            self.txn_index.append(ended)
        horizon_ms = batch.delete_horizon_ms
        if not batch.count or (is_unneeded and horizon_ms is not None and horizon_ms <= self._now_ms):
            return self._emptied(batch)
        return self._written(batch, read_records(batch), whole=True, needs_horizon=is_unneeded)

    def _kept(self, batch: BatchView, records: list[Record]) -> list[Record]:
        """The records of a data batch that are kept."""
        latest_offset = self._offsets.latest_offset
        get = self._offsets.get
        horizon_ms = batch.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or self._now_ms < horizon_ms
        kept = []
        for record in records:
            if record.offset > latest_offset:
                kept.append(record)
            elif record.key is None:
                self._stats.records_without_key += 1
            elif (keeps_tombstones or record.value is not None) and record.offset >= get(record.key):
                kept.append(record)
        return kept

    def _written(self, batch: BatchView, records: list[Record], *, whole: bool, needs_horizon: bool) -> memoryview | bytearray:
        self._stats.records_written += len(records)
        horizon_ms = batch.delete_horizon_ms
        sets_horizon = needs_horizon and horizon_ms is None
        if whole and not sets_horizon:
            return batch.data
        return build_batch(
            records,
            base_offset=batch.base_offset,
            last_offset_delta=batch.last_offset_delta,
            leader_epoch=batch.leader_epoch,
            codec=batch.codec,
            append_time_ms=batch.max_timestamp if batch.is_append_time else None,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.is_transactional,
            control=batch.is_control,
            delete_horizon_ms=self._now_ms + self._delete_retention_ms if sets_horizon else horizon_ms,
        )

    def _emptied(self, batch: BatchView) -> bytearray | None:
        """The header of a batch without records if it must stay, else None."""
        if not self._is_last_of_producer(batch) and batch.next_offset != self._end_of_round:
            return None
        self._stats.batches_emptied += 1
        return empty_batch(batch)

    def _is_last_of_producer(self, batch: BatchView) -> bool:
        """Whether this is the last batch of an active producer, which holds its sequence or epoch."""
        last = self._producers.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.epoch


def empty_batch(batch: BatchView) -> bytearray:
    """`batch` without its records: uncompressed, without base timestamp and delete horizon, which described the records."""
    empty = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        empty,
        0,
        batch.base_offset,
        HEADER_SIZE - LOG_OVERHEAD,
        batch.leader_epoch,
        MAGIC,
        0,
        batch.attributes & ATTRIBUTES_OF_EMPTY,
        batch.last_offset_delta,
        NO_TIMESTAMP,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        0,
    )
    set_crc(empty, 0, HEADER_SIZE)
    return empty


# Transactions in a compaction pass: which batches are aborted data, and when an end marker may be dropped.
#
# A marker stays while any batch of its transaction remains: without it, read_committed consumers could not tell whether that
# batch was committed. A pass that meets no such batch gives the marker a delete horizon; after that time a pass drops it.
#
# Called for every batch, in the order of the log, over all segments of a pass.


class PassedTransactions:
    """The transactions open at the offset that a pass has reached."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._waiting = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}
        self._aborted_seen: set[int] = set()
        self._committed_seen: set[int] = set()

    def pass_data(self, batch: BatchView) -> bool:
        """Take note of a data batch; True if it belongs to an aborted transaction and is dropped."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._aborted_seen.add(batch.producer_id)
            return True
        self._committed_seen.add(batch.producer_id)
        return False

    def pass_control(self, batch: BatchView) -> tuple[bool, AbortedTxn | None]:
        """Take note of a control batch. Returns whether no data needs it any more, and, for the transaction index of the new
        segment, the aborted transaction that it ends if data of it was met."""
        self._begin_up_to(batch.last_offset)
        if not batch.count:
            return True, None  # emptied by an earlier pass
        control_type = parse_control_type(read_records(batch)[0].key)
        producer_id = batch.producer_id
        if control_type == ControlType.ABORT:
            txn = self._aborted.pop(producer_id, None)
            if txn is not None and producer_id in self._aborted_seen:
                self._aborted_seen.discard(producer_id)
                return False, txn
            return True, None
        if control_type == ControlType.COMMIT:
            if producer_id in self._committed_seen:
                self._committed_seen.discard(producer_id)
                return False, None
            return True, None
        return False, None

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            txn = self._waiting.pop()
            self._aborted.setdefault(txn.producer_id, txn)


# Keeps a job's reading and writing below a number of bytes per second (log.cleaner.io.max.bytes.per.second).


class Throttle:
    """Counts bytes, and waits when they exceed the rate. `bytes_per_second` None: no limit."""

    def __init__(self, world: HelperWorld, bytes_per_second: float | None) -> None:
        self._world = world
        self._bytes_per_second = bytes_per_second
        self._started_s = world.clock.monotonic_s()
        self._bytes = 0

    async def spend(self, size_bytes: int) -> None:
        """Count `size_bytes` read or written, and wait until the rate allows them."""
        if self._bytes_per_second is None:
            await self._world.pause(0)
            return
        self._bytes += size_bytes
        early_s = self._bytes / self._bytes_per_second - (self._world.clock.monotonic_s() - self._started_s)
        await self._world.pause(max(0.0, early_s))


# The helper process's side of a pass; `env/work.py` says how jobs run.
#
# It reads closed segments, which do not change, and writes `.cleaned` files, which are not yet read. The node swaps them in.
# The job is a `CompactionPlan`; a `CleanedGroup` is reported for each new segment; the result is `CompactionStats`.

MODULE = "ottla.log.compaction.cleaner"


async def run_job(job: Mapping[str, Any], world: HelperWorld) -> dict[str, object]:
    """Do one pass."""
    cleaning = CleaningPass(CompactionPlan.from_json(job), world)
    async with aclosing(cleaning.run()) as groups:
        async for group in groups:
            world.progress(group._asdict())
    return asdict(cleaning.stats)


# The records of a batch, for a pass of compaction, within bounds on time and memory.
#
# A batch with a right CRC can still be unreadable: not every compressed batch is unpacked before it is appended. Such a batch
# stays in the log as it is. Its keys are not known, so it supersedes nothing.

RECORDS_MAX = 1_000_000
"""A batch with more is left as it is: the list of its records would take more than 150 MB."""


class NeedsHelper(OttlaError):
    """A batch is too large to be unpacked on the event loop."""


def unpacked(batch: BatchView, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record] | str:
    """The records of `batch`, or why they cannot be read.

    `NeedsHelper` if they are larger than `size_bytes_max`, but perhaps not larger than a helper may unpack.
    """
    if batch.count > RECORDS_MAX:
        return f"it has {batch.count:,} records, and compaction reads at most {RECORDS_MAX:,} of a batch"
    try:
        return read_records(batch, decompressed_bytes_max=size_bytes_max)
    except ExpandsTooFar as problem:
        if size_bytes_max < DECOMPRESSED_BYTES_MAX:
            raise NeedsHelper(str(problem)) from None
        return str(problem)
    except CorruptRecords as problem:
        return str(problem)


def work_bytes(batch: BatchView) -> int:
    """How many bytes have to be looked at, at most, to read the records of `batch`."""
    codec = batch.attributes & CODEC_MASK
    if not codec:
        return batch.size
    plain = plain_bytes_max(codec, batch.buffer, batch.position + HEADER_SIZE, batch.position + batch.size)
    return max(batch.size, min(plain, DECOMPRESSED_BYTES_MAX))
