"""Compaction of a log in use: what is kept, what is dropped and when, and failures."""

import asyncio
import errno
import gc
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.logs.compaction_logs import batches_of, committed_records, visible_state

from ottla.config.topic import LogConfig
from ottla.env import HelperDied, OpenMode
from ottla.errors import LogDirectoryFailed
from ottla.log.compaction.plan import CleanerSettings
from ottla.log.producers.append_checks import AppendOrigin
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker

Make = Callable[..., Any]


def pairs(log: Any) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in committed_records(log)]


def test_the_last_value_of_each_key_stays_at_its_offset(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    harness.put((b"c", b"1"), codec=Codec.ZSTD)
    harness.roll()
    harness.put((b"b", b"2"), (b"c", b"1"), codec=Codec.GZIP)
    harness.roll()
    harness.put((b"a", b"active"))
    stats = harness.compact()
    assert pairs(harness.log) == [(2, b"a", b"2"), (4, b"b", b"2"), (5, b"c", b"1"), (6, b"a", b"active")]
    assert (stats.end_offset, stats.keys, stats.records_read, stats.records_written) == (6, 3, 6, 3)
    assert [segment.base_offset for segment in harness.log.segments] == [0, 6]
    assert harness.compactor.checkpoint_of(harness.log) == 6
    assert harness.disk.read_file("/data/cleaner-offset-checkpoint") == b"0\n1\ntopic 0 6\n"
    first, *_ = batches_of(harness.log)
    assert (first.base_offset, first.last_offset, first.count) == (0, 2, 1)


def test_the_active_segment_is_never_touched(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    assert harness.compact() is None
    assert len(pairs(harness.log)) == 2


def test_a_tombstone_is_dropped_after_its_delete_horizon(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"b", b"1"))
    harness.put((b"a", None))
    harness.roll()
    harness.put((b"c", b"1"))
    harness.compact()
    assert pairs(harness.log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    horizon_ms = harness.clock.now_ms() + 1000
    assert [batch.delete_horizon_ms for batch in batches_of(harness.log)] == [None, horizon_ms, None]
    harness.clock.advance(999)
    harness.roll()
    harness.put((b"d", b"1"))
    assert harness.compactor.choose([harness.log]) is None  # three batches of 70 bytes, one of them dirty
    harness.config = harness.log.config = replace(harness.config, min_cleanable_dirty_ratio=0.0)
    harness.compact()
    assert (2, b"a", None) in pairs(harness.log)
    harness.clock.advance(1)
    harness.roll()
    harness.put((b"e", b"1"))
    harness.compact()
    assert pairs(harness.log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"d", b"1"), (5, b"e", b"1")]


def test_log_line_of_a_pass_has_counts_and_sizes(harness: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ottla.log")
    harness.put((None, b"1"), (b"a", b"1"), (b"a", b"2"))
    harness.roll()
    harness.put((b"b", b"1"))
    harness.compact()
    (line,) = [record.message for record in caplog.records if record.message.startswith("compacted")]
    sizes = r"\(\d+ bytes\)"
    assert re.fullmatch(
        f"compacted topic-0 up to offset 3: 3 records {sizes} became 1 {sizes}, with 1 key in a map that was 25% full; "
        "1 record without key dropped",
        line,
    )


def test_records_without_a_key_are_dropped(harness: Any) -> None:
    harness.put((None, b"1"), (b"a", b"1"), (None, None))
    harness.roll()
    harness.put((b"b", b"1"))
    stats = harness.compact()
    assert pairs(harness.log) == [(1, b"a", b"1"), (3, b"b", b"1")]
    assert stats.records_without_key == 2


def transaction(
    harness: Any, producer_id: int, sequence: int, *records: tuple[bytes, bytes | None], commit: bool | None
) -> None:
    how = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "transactional": True}
    harness.put(*records, **how)
    if commit is not None:
        end(harness, producer_id, commit)


def end(harness: Any, producer_id: int, commit: bool) -> None:
    marker = build_end_marker(
        is_commit=commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=harness.clock.now_ms()
    )
    harness.log.append_as_leader(marker, 0, AppendOrigin.COORDINATOR)
    harness.log.update_high_watermark(harness.log.log_end_offset)


def test_aborted_data_is_dropped_and_its_markers_by_a_later_pass(make_bench: Make) -> None:
    harness = make_bench(LogConfig(cleanup_policy=("compact",), delete_retention_ms=1000, min_cleanable_dirty_ratio=0.0))
    transaction(harness, 1, 0, (b"a", b"aborted"), commit=False)
    transaction(harness, 2, 0, (b"a", b"committed"), commit=True)
    transaction(harness, 1, 1, (b"z", b"later"), commit=True)
    harness.roll()
    harness.put((b"b", b"1"))
    harness.compact()
    assert pairs(harness.log) == [(2, b"a", b"committed"), (4, b"z", b"later"), (6, b"b", b"1")]
    kinds = [(batch.base_offset, batch.is_control, batch.count) for batch in batches_of(harness.log)]
    # The abort marker (1) stays: this pass met the data that it ended.
    assert kinds == [(1, True, 1), (2, False, 1), (3, True, 1), (4, False, 1), (5, True, 1), (6, False, 1)]
    assert harness.log.aborted_transactions(0, 10)[0].last_offset == 1

    for expected in ([(1, True, 1)], []):  # first it gets its delete horizon, then it is dropped
        harness.roll()
        harness.put((b"c", b"x"))
        harness.compact()
        kinds = [(batch.base_offset, batch.is_control, batch.count) for batch in batches_of(harness.log)]
        assert [kind for kind in kinds if kind[0] < 2] == expected
        harness.clock.advance(1000)
    assert harness.log.aborted_transactions(0, 10) == []


def test_an_open_transaction_stops_compaction(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    transaction(harness, 1, 0, (b"a", b"open"), commit=None)
    harness.roll()
    harness.put((b"a", b"3"), (b"a", b"4"))
    harness.roll()
    candidate = harness.compactor.choose([harness.log])
    assert (candidate.first_dirty_offset, candidate.first_uncleanable_offset) == (0, 2)
    end(harness, 1, commit=True)
    harness.roll()
    assert harness.compactor.choose([harness.log]).first_uncleanable_offset == 6


def test_the_last_batch_of_a_producer_stays_as_a_header(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"b", b"1"), producer_id=7, producer_epoch=3, base_sequence=0)
    harness.put((b"a", b"2"), (b"b", b"2"), producer_id=7, producer_epoch=3, base_sequence=2, codec=Codec.LZ4)
    harness.put((b"a", b"3"), (b"b", b"3"))
    harness.roll()
    harness.put((b"c", b"1"))
    harness.compact()
    empty, full, _ = batches_of(harness.log)
    assert (empty.base_offset, empty.last_offset, empty.count, empty.last_sequence) == (2, 3, 0, 3)
    assert (empty.producer_id, empty.producer_epoch, empty.codec, empty.size) == (7, 3, Codec.NONE, 61)
    assert full.base_offset == 4
    harness.run(harness.log.close())
    harness.open()
    harness.put((b"d", b"1"), producer_id=7, producer_epoch=3, base_sequence=4)  # the next sequence is accepted


def test_the_end_of_the_cleaned_part_stays_as_a_header(harness: Any) -> None:
    harness.put((b"a", b"1"))
    harness.put((None, b"no key"))
    harness.roll()
    harness.put((b"a", b"2"))
    harness.compact()
    assert [(batch.base_offset, batch.count) for batch in batches_of(harness.log)] == [(0, 1), (1, 0), (2, 1)]


def test_a_full_map_cleans_a_part_and_the_next_pass_continues(make_bench: Make) -> None:
    harness = make_bench(
        LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0),
        CleanerSettings(dedupe_buffer_bytes=24 * 10, dedupe_load_factor=0.5),
    )
    for round_number in range(4):
        for key in range(8):
            harness.put((b"key %d" % key, b"%d" % round_number))
    harness.roll()
    expected = visible_state(harness.log)
    ends = []
    while (stats := harness.compact()) is not None:
        assert stats.keys <= 5
        ends.append(stats.end_offset)
        assert visible_state(harness.log) == expected
    assert ends == [5, 10, 15, 20, 25, 30, 32]
    assert len(pairs(harness.log)) < 16


def test_old_segments_merge(make_bench: Make) -> None:
    harness = make_bench(LogConfig(cleanup_policy=("compact",), segment_bytes=1000))
    for number in range(30):
        harness.put((b"key %d" % (number % 3), b"v" * 100))
        harness.roll()
    assert len(harness.log.segments) == 31
    expected = visible_state(harness.log)
    while harness.compact() is not None:
        pass
    assert len(harness.log.segments) < 8
    assert visible_state(harness.log) == expected
    assert harness.log.read(0, 1 << 20).records is not None


def test_min_compaction_lag_holds_young_segments_back(make_bench: Make) -> None:
    harness = make_bench(LogConfig(cleanup_policy=("compact",), min_compaction_lag_ms=500))
    harness.put((b"a", b"1"))
    harness.roll()
    harness.clock.advance(300)
    harness.put((b"a", b"2"))
    harness.roll()
    assert harness.compactor.choose([harness.log]) is None
    harness.clock.advance(200)
    assert harness.compactor.choose([harness.log]).first_uncleanable_offset == 1
    harness.clock.advance(300)
    assert harness.compactor.choose([harness.log]).first_uncleanable_offset == 2


def test_max_compaction_lag_forces_a_log_that_is_hardly_dirty(make_bench: Make) -> None:
    harness = make_bench(LogConfig(cleanup_policy=("compact",), max_compaction_lag_ms=5000))
    harness.put((b"a", b"x" * 5000))
    harness.roll()
    harness.put((b"b", b"1"))
    harness.roll()
    assert harness.compact() is not None
    harness.put((b"b", b"2"))
    harness.roll()
    assert harness.compact() is None
    harness.clock.advance(5001)
    assert harness.compact() is not None


def test_the_dirtiest_log_comes_first_and_others_are_left(make_bench: Make) -> None:
    benches = [make_bench(), make_bench(), make_bench(LogConfig())]
    for harness, clean in zip(benches, (4000, 1000, 10), strict=True):
        harness.put((b"a", b"x" * clean))
        harness.roll()
        harness.compact()
        harness.put((b"b", b"x" * 5000))
        harness.roll()
    first, second, deleted = (harness.log for harness in benches)
    second.partition = second.partition._replace(partition=1)
    compactor = benches[0].compactor
    compactor._offsets["/data"] = {first.partition: 1, second.partition: 1}
    assert compactor.choose([deleted, first, second]).log is second
    assert compactor.choose([deleted, first]).log is first
    assert compactor.choose([deleted]) is None


def test_a_checkpoint_outside_the_log_is_ignored(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    harness.compactor._offsets["/data"] = {harness.log.partition: 500}
    assert harness.compact().end_offset == 2
    assert pairs(harness.log) == [(1, b"a", b"2")]
    harness.compactor._offsets["/data"] = {harness.log.partition: 3}
    assert harness.compactor.choose([harness.log]) is not None
    assert harness.compactor.checkpoint_of(harness.log) == 0


def test_a_damaged_checkpoint_restarts_compaction(harness: Any) -> None:
    harness.disk.open("/data/cleaner-offset-checkpoint", OpenMode.CREATE).append(b"0\n7\nrubbish")
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    assert harness.compact().end_offset == 2


def test_a_log_with_a_damaged_segment_becomes_uncleanable(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    file = harness.disk.open("/data/topic-0/00000000000000000000.log", OpenMode.WRITE)
    file.write_at(70, b"\xff")
    assert harness.compact() is None
    assert "CRC" in harness.compactor.uncleanable[harness.log.partition]
    assert harness.compactor.choose([harness.log]) is None
    assert not [name for name in harness.disk.list_directory("/data/topic-0") if "cleaned" in name]
    assert len(harness.log.segments) == 2


@pytest.mark.parametrize("operation", ["append", "sync", "rename", "open"])
def test_a_failing_disk_fails_the_log(harness: Any, operation: str) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    fault = harness.disk.fail(operation, "*.cleaned", errno.ENOSPC)
    with pytest.raises(LogDirectoryFailed, match="injected"):
        harness.compact()
    assert fault.hits == 1
    assert harness.compactor.choose([harness.log]) is None


@pytest.mark.parametrize("inline_bytes_max", [1 << 30, 0])
def test_a_pass_is_abandoned_where_the_log_must_change(harness: Any, inline_bytes_max: int) -> None:
    harness.compactor.inline_bytes_max = inline_bytes_max
    for number in range(6):
        harness.put((b"a", b"%d" % number), (b"b", b"x" * 200_000))
        harness.roll()

    async def main() -> tuple[object, list[int]]:
        task = asyncio.create_task(harness.compactor.run_once({harness.log.partition: harness.log}))
        while not harness.disk.counts["append"] > 20:
            await asyncio.sleep(0)
            if any(name.endswith(".log.cleaned") for name in harness.disk.list_directory("/data/topic-0")):
                break
        async with harness.compactor.paused(harness.log.partition):
            assert task.done() or inline_bytes_max == 0
            assert harness.compactor.choose([harness.log]) is None
            await harness.log.truncate_to(5)
            await harness.compactor.truncated(harness.log)
        return await task, [segment.base_offset for segment in harness.log.segments]

    result, bases = asyncio.run(main())
    assert result is None
    assert bases == [0, 2, 4]
    assert not [name for name in harness.disk.list_directory("/data/topic-0") if name.endswith((".cleaned", ".swap"))]
    assert harness.compact() is not None


def test_compact_and_delete_together(make_bench: Make) -> None:
    harness = make_bench(LogConfig(cleanup_policy=("compact", "delete"), retention_bytes=0, min_cleanable_dirty_ratio=0.0))
    for number in range(4):
        harness.put((b"key %d" % (number % 2), b"%d" % number))
        harness.roll()
    harness.compact()
    assert harness.compactor.checkpoint_of(harness.log) == 4
    harness.put((b"key 0", b"new"), (b"key 0", b"newer"))
    harness.roll()
    doomed = [segment for segment in harness.log.segments if segment.base_offset < 4]

    async def retain() -> None:
        async with harness.compactor.paused(harness.log.partition):
            await harness.log.delete_segments(doomed)

    harness.run(retain())
    assert harness.log.log_start_offset == 4
    harness.compact()
    assert pairs(harness.log) == [(5, b"key 0", b"newer")]


def test_a_truncated_log_lowers_its_checkpoint(harness: Any) -> None:
    for number in range(4):
        harness.put((b"a", b"%d" % number))
        harness.roll()
    harness.compact()
    assert harness.compactor.checkpoint_of(harness.log) == 4

    async def cut() -> None:
        async with harness.compactor.paused(harness.log.partition):
            await harness.log.truncate_to(3)
            await harness.compactor.truncated(harness.log)

    harness.run(cut())
    assert harness.compactor.checkpoint_of(harness.log) == 0
    harness.run(harness.compactor.forget("/data", [harness.log.partition]))
    assert harness.disk.read_file("/data/cleaner-offset-checkpoint") == b"0\n0\n"


def test_ranges_held_by_readers_stay_readable(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    held = harness.log.read(0, 1 << 20).records
    before = held.read()
    harness.compact()
    harness.clock.advance(harness.config.file_delete_delay_ms)
    assert harness.run(harness.log.delete_due_files()) == 1
    assert held.read() == before


class DyingHelpers:
    """Helpers that are killed before they have done anything."""

    async def run(self, *_: object) -> dict[str, object]:
        raise HelperDied("the helper process ended with code -9")


def test_a_killed_helper_is_tried_again(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    helpers, harness.compactor._helpers = harness.compactor._helpers, DyingHelpers()
    harness.compactor.inline_bytes_max = 0
    assert harness.compact() is None
    assert not harness.compactor.uncleanable
    harness.compactor._helpers = helpers
    assert harness.compact().end_offset == 2
    assert helpers.jobs_run == 1


def test_cancelling_never_leaves_a_swap_half_done(make_bench: Make) -> None:
    """The owner's task is cancelled after every number of steps; every swap that began is complete."""
    outcomes = set()
    for steps in range(0, 260, 5):
        harness = make_bench(LogConfig(cleanup_policy=("compact",), segment_bytes=450))
        for number in range(6):
            harness.put((b"a", b"%d" % number), (b"b", b"x" * 100))
            harness.roll()
        expected = visible_state(harness.log)

        async def pause() -> None:
            await asyncio.sleep(0)

        async def main(harness: Any = harness, steps: int = steps) -> bool:
            harness.disk.pause = pause
            task = asyncio.create_task(harness.compactor.run_once({harness.log.partition: harness.log}))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled()

        cancelled = harness.run(main())
        names = harness.disk.list_directory("/data/topic-0")
        assert not [name for name in names if name.endswith(".swap")]
        assert visible_state(harness.log) == expected
        outcomes.add((cancelled, len(harness.log.segments)))
        harness.disk.pause = None
        harness.run(harness.log.close())
        harness.open()
        assert visible_state(harness.log) == expected
    assert len(outcomes) > 2


def test_a_swap_that_fails_after_cancellation_is_reported_once(make_bench: Make) -> None:
    """The log has failed, and no task is left with an exception that was never retrieved."""
    failed_late = 0
    for steps in range(0, 120, 4):
        harness = make_bench(LogConfig(cleanup_policy=("compact",), segment_bytes=450))
        for number in range(3):
            harness.put((b"a", b"%d" % number), (b"b", b"x" * 100))
            harness.roll()
        harness.disk.fail("rename", "*.log", errno.ENOSPC)
        unseen: list[Any] = []

        async def pause() -> None:
            await asyncio.sleep(0)

        async def main(harness: Any = harness, steps: int = steps, unseen: list[Any] = unseen) -> bool:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
            harness.disk.pause = pause
            task = asyncio.create_task(harness.compactor.run_once({harness.log.partition: harness.log}))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            is_cancelled = task.cancelled() or task.exception() is None
            del task
            gc.collect()
            return is_cancelled

        is_cancelled = harness.run(main())
        failed_late += is_cancelled and harness.log.failure is not None
        assert unseen == []
    assert failed_late


def test_a_checkpoint_that_the_disk_cannot_read_fails_the_directory(harness: Any) -> None:
    harness.put((b"a", b"1"), (b"a", b"2"))
    harness.roll()
    harness.run(harness.disk.replace_file("/data/cleaner-offset-checkpoint", b"0\n0\n"))
    harness.disk.fail("open", "*/cleaner-offset-checkpoint", errno.EIO)
    with pytest.raises(LogDirectoryFailed, match="/data"):
        harness.run(harness.compactor.run_once({harness.log.partition: harness.log}))
