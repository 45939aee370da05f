"""One pass of compaction over one log: reads old segments, writes `.cleaned` ones, reports each as it is done.

First it reads the dirty part and puts the last offset of every key into the map, until the end or until the map is full; the
pass cleans only as far as the map reaches, and the next pass continues there. Then it reads every segment from the log start
again and writes the records to keep.

Runs in a helper process for large logs, and on the event loop, in slices, for small ones (`job.py`, `compactor.py`). It uses
clock and disk only through `HelperWorld`, and yields to other tasks after every slice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence

from ottla.env import HelperWorld, OpenMode
from ottla.errors import CorruptFile, CorruptRecords
from ottla.log.compaction.batch_filter import BatchFilter
from ottla.log.compaction.groups import group_segments
from ottla.log.compaction.offset_map import OffsetMap, memory_for
from ottla.log.compaction.plan import CleanedGroup, CompactionPlan, CompactionStats, SegmentPlan
from ottla.log.compaction.throttle import Throttle
from ottla.log.compaction.transactions import PassedTransactions
from ottla.log.compaction.unpacking import unpacked, work_bytes
from ottla.log.names import CLEANED_SUFFIX, LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file_name
from ottla.log.segments.scan import REMEDY, checked_batches, find_offset
from ottla.log.segments.segment import Segment
from ottla.records.batch import BatchView
from ottla.records.reader import DECOMPRESSED_BYTES_MAX

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
