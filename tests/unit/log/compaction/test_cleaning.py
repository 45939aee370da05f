"""One pass by itself: memory, throttling, plans as JSON."""

import asyncio
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

from ottla.env import OpenMode
from ottla.log.compaction.cleaner import CleaningPass
from ottla.log.compaction.offset_map import SLOT_BYTES
from ottla.log.compaction.plan import CleanedGroup, CompactionPlan, LastRecord, SegmentPlan
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.sim.disk import MemoryDisk
from ottla.sim.world import InPlaceWorld, ManualClock

FOLDER = "/data/topic-0"


def plan(segments: tuple[SegmentPlan, ...], end: int, **how: Any) -> CompactionPlan:
    settings: dict[str, Any] = {
        "first_dirty_offset": 0,
        "now_ms": 0,
        "delete_retention_ms": 0,
        "segment_bytes": 1 << 30,
        "segment_index_bytes": 10 << 20,
        "index_interval_bytes": 4096,
    }
    return CompactionPlan(FOLDER, segments, first_uncleanable_offset=end, **(settings | how))


def written(disk: MemoryDisk, batches: Iterator[bytearray]) -> SegmentPlan:
    disk.make_directory(FOLDER)
    file = disk.open(f"{FOLDER}/{0:020d}.log", OpenMode.CREATE)
    for batch in batches:
        file.append(batch)
    return SegmentPlan(0, file.size, 0, 0)


def run(cleaning: CleaningPass) -> list[CleanedGroup]:
    async def main() -> list[CleanedGroup]:
        return [group async for group in cleaning.run()]

    return asyncio.run(main())


def keyed_batches(count: int, value: bytes) -> Iterator[bytearray]:
    for offset in range(0, count, 10):
        yield build_batch([Record(offset + index, 0, b"key %012d" % (offset + index), value) for index in range(10)])


def test_memory_does_not_grow_with_the_log() -> None:
    peaks = []
    for records in (30_000, 90_000):
        disk = MemoryDisk()
        segment = written(disk, keyed_batches(records, b"v" * 50))
        keys_max = 2000
        cleaning = CleaningPass(
            plan((segment,), records, dedupe_buffer_bytes=SLOT_BYTES * keys_max, dedupe_load_factor=1.0),
            InPlaceWorld(disk, ManualClock(), None),
        )
        # The simulated disk must not keep the new file's bytes: they would count as memory of the pass.
        real_open = disk.open

        def opened(path: str, mode: OpenMode, real_open: Any = real_open) -> Any:
            file = real_open(path, mode)
            return _Forgetful(file) if ".cleaned" in path else file

        disk.open = opened  # type: ignore[method-assign]
        tracemalloc.start()
        run(cleaning)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert cleaning.stats.keys == keys_max
        assert cleaning.stats.records_read == records
    assert peaks[1] < peaks[0] * 1.2
    assert peaks[1] < 4 << 20


class _Forgetful:
    """A file that counts appended bytes and drops them."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.path, self.size = file.path, 0

    def append(self, *parts: bytes) -> int:
        start = self.size
        self.size += sum(map(len, parts))
        return start

    def truncate(self, size: int) -> None:
        self.size = size

    async def sync(self) -> None:
        pass

    def close(self) -> None:
        self._file.close()


class SlowWorld(InPlaceWorld):
    """A world whose clock advances by every pause."""

    async def pause(self, seconds: float) -> None:
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(seconds * 1000)


def test_reading_and_writing_keep_below_their_limit() -> None:
    disk, clock = MemoryDisk(), ManualClock()
    segment = written(disk, keyed_batches(5000, b"v" * 100))
    cleaning = CleaningPass(plan((segment,), 5000, bytes_per_second=100_000), SlowWorld(disk, clock, None))
    run(cleaning)
    moved = cleaning.stats.bytes_read + cleaning.stats.bytes_written
    assert cleaning.stats.bytes_read == 2 * segment.size_bytes
    assert abs(clock.monotonic_s() - moved / 100_000) < 1


def test_others_run_between_slices() -> None:
    disk, pauses = MemoryDisk(), []

    class CountingWorld(InPlaceWorld):
        async def pause(self, seconds: float) -> None:
            pauses.append(seconds)

    segment = written(disk, keyed_batches(5000, b"v"))
    run(CleaningPass(plan((segment,), 5000), CountingWorld(disk, ManualClock(), None)))
    assert len(pauses) >= 2 * 5000 / 260


def test_a_plan_survives_json() -> None:
    full = plan(
        (SegmentPlan(0, 10, 8, 12), SegmentPlan(5, 20, 0, 0)),
        9,
        aborted=(AbortedTxn(1, 2, 3, 4),),
        producers={7: LastRecord(8, 1), 9: LastRecord(-1, 0)},
        bytes_per_second=1.5,
    )
    assert CompactionPlan.from_json(json.loads(json.dumps(full.to_json()))) == full
