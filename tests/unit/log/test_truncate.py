"""Truncating a log: records, epochs, producers, watermarks, and kills half-way."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.log_reading import consume
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.config.topic import LogConfig
from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed
from ottla.log.read import Isolation


def filled() -> LogOnDisk:
    env = LogOnDisk()
    env.fill(20, epoch=1)
    env.fill(20, epoch=2)
    return env


@pytest.mark.parametrize("offset", [0, 2, 18, 20, 40, 42, 60, 78])
def test_the_log_ends_where_it_was_cut(offset: int) -> None:
    env = filled()
    env.log.update_high_watermark(70)
    env.flush()
    assert run(env.log.truncate_to(offset))
    env.checkpoint()
    assert env.log.log_end_offset == offset
    assert env.log.high_watermark == min(70, offset)
    assert env.log.recovery_point == offset
    assert env.offsets() == list(range(offset))
    assert env.log.epochs.entries == [entry for entry in [(1, 0), (2, 40)] if entry[1] < offset]
    env.fill(10, epoch=3)
    assert env.offsets() == list(range(offset + 20))
    for _ in range(2):
        env.crash()
        assert env.offsets() == list(range(offset + 20))
        assert env.log.epochs.entries[-1] == (3, offset)


def test_truncating_the_log_inside_a_batch_cuts_the_whole_batch() -> None:
    env = filled()
    assert run(env.log.truncate_to(33))
    assert env.log.log_end_offset == 32


def test_truncating_at_or_past_the_end_drops_only_an_empty_epoch() -> None:
    env = filled()
    env.log.assign_epoch(7, 80)
    assert not run(env.log.truncate_to(80))
    assert env.log.epochs.entries == [(1, 0), (2, 40)]
    assert not run(env.log.truncate_to(1000))
    assert env.log.log_end_offset == 80


def test_truncating_before_the_first_segment_restarts_the_log() -> None:
    env = filled()
    env.log.update_high_watermark(80)
    run(env.log.delete_segments(list(env.log.segments)[:2]))
    start = env.log.log_start_offset
    assert run(env.log.truncate_to(start - 1))
    assert (env.log.log_start_offset, env.log.log_end_offset, env.log.high_watermark) == (start - 1,) * 3
    env.fill(3)
    assert env.offsets() == list(range(start - 1, start + 5))


def test_a_full_truncation_restarts_at_another_offset() -> None:
    env = filled()
    env.append(b"a", producer=(3, 0, 0))
    for offset in (0, 1000, 1002, 1001, 50):
        run(env.log.truncate_fully_and_start_at(offset))
        assert env.log.segments.base_offsets == [offset]
        assert env.log.epochs.entries == []
        assert not env.log.producers.producers
        env.fill(2, epoch=5)
        assert env.offsets() == list(range(offset, offset + 4))
        env.checkpoint()
        env.crash()
        assert env.offsets() == list(range(offset, offset + 4))


def test_producers_are_rolled_back_with_the_records() -> None:
    env = LogOnDisk()
    for number in range(20):
        env.append(b"x" * 150, producer=(5, 0, number))
    run(env.log.truncate_to(10))
    for number in range(5, 10):
        assert env.log.append_as_leader(make_batch(b"x" * 150, producer=(5, 0, number)), 0).is_duplicate
    with pytest.raises(KafkaError, match="sequence 12"):
        env.append(b"x", producer=(5, 0, 12))
    assert env.append(b"x", producer=(5, 0, 10)) == 10


def test_a_transaction_is_open_again_when_its_marker_is_cut() -> None:
    env = LogOnDisk()
    env.append(b"a", producer=(5, 0, 0), transactional=True)
    env.fill(1)
    marker = env.end_transaction(5, commit=False)
    env.fill(1)
    env.log.update_high_watermark(marker)
    run(env.log.truncate_to(marker))
    env.log.update_high_watermark(marker)
    assert env.log.last_stable_offset == 0
    assert env.log.aborted_transactions(0, 100) == []
    assert env.log.read(0, 1000, Isolation.COMMITTED).records is None


@pytest.mark.parametrize("more_data", [False, True])
def test_abort_after_a_cut_covers_data_before_an_unsaved_log_start(more_data: bool) -> None:
    env = LogOnDisk()
    env.append(b"aborted", producer=(5, 0, 0), transactional=True)
    env.fill(1)
    if more_data:
        env.append(b"aborted too", producer=(5, 0, 1), transactional=True)
    end = env.log.log_end_offset
    env.fill(1)
    env.log.update_high_watermark(end)
    env.log.delete_records(1)
    run(env.log.truncate_to(end))
    env.end_transaction(5, commit=False)
    env.log.roll()
    run(env.log.flush())
    env.recovery_point = env.log.recovery_point  # the log start of 1 is in no checkpoint yet
    env.crash()
    assert env.log.log_start_offset == 0
    env.log.update_high_watermark(env.log.log_end_offset)
    assert [record.offset for _, record in consume(env.log, Isolation.COMMITTED)] == [1, 2]


def test_open_transaction_before_an_unsaved_log_start_survives_a_cut() -> None:
    env = LogOnDisk()
    env.append(b"undecided", producer=(5, 0, 0), transactional=True)
    env.fill(2)
    env.log.update_high_watermark(3)
    env.log.delete_records(1)
    run(env.log.truncate_to(3))
    env.log.roll()
    run(env.log.flush())
    env.recovery_point = env.log.recovery_point
    env.crash()
    env.log.update_high_watermark(3)
    assert (env.log.log_start_offset, env.log.last_stable_offset) == (0, 0)


def test_nothing_is_appended_while_files_are_being_cut() -> None:
    env = filled()

    async def both() -> None:
        turns = 0

        async def pause() -> None:
            nonlocal turns
            turns += 1
            if turns == 2:
                with pytest.raises(BrokenInvariant, match="being truncated"):
                    env.append(b"too early")
                assert [record.offset for record in env.records()] == list(range(10))
            await asyncio.sleep(0)

        env.disk.pause = pause
        await env.log.truncate_to(10)
        env.disk.pause = None
        assert turns > 2

    run(both())
    assert env.append(b"now") == 10


def test_a_running_flush_does_not_raise_the_recovery_point_past_a_cut() -> None:
    env = filled()

    async def both() -> None:
        async def pause() -> None:
            await asyncio.sleep(0)

        env.disk.pause = pause
        flush = asyncio.ensure_future(env.log.flush())
        await asyncio.sleep(0)
        await env.log.truncate_to(10)
        await flush
        env.disk.pause = None

    run(both())
    assert env.log.recovery_point <= 10


@pytest.mark.parametrize("power_loss", [False, True])
def test_killed_at_every_point_of_a_truncation(power_loss: bool) -> None:
    completed = 0
    for calls in range(200):
        env = filled()
        env.flush()
        env.disk.crash_before(calls)
        try:
            run(env.log.truncate_to(30))
            completed += 1
        except LogDirectoryFailed:
            pass
        env.crash(power_loss)
        end = env.log.log_end_offset
        assert 30 <= end <= 80
        assert env.offsets() == list(range(end)), f"a gap after {calls} calls"
        assert env.log.epochs.entries == [entry for entry in [(1, 0), (2, 40)] if entry[1] < end]
        if completed > 2:
            return
    pytest.fail("the truncation never completed")


@pytest.mark.parametrize("power_loss", [False, True])
@pytest.mark.parametrize("offset", [0, 30, 31, 40, 80, 500])
def test_killed_at_every_point_of_a_full_truncation(offset: int, power_loss: bool) -> None:
    completed = 0
    for calls in range(300):
        env = filled()
        env.flush()
        env.disk.crash_before(calls)
        try:
            run(env.log.truncate_fully_and_start_at(offset))
            env.checkpoint()
            completed += 1
        except LogDirectoryFailed:
            pass
        env.crash(power_loss)
        end = env.log.log_end_offset
        offsets = env.offsets()
        assert offsets == list(range(len(offsets))), f"a gap after {calls} calls"
        assert end in (len(offsets), offset)
        assert env.append(b"next", epoch=9) == end
        if completed > 2:
            return
    pytest.fail("it never completed")


def test_a_snapshot_is_written_again_after_a_full_truncation() -> None:
    env = filled()
    run(env.log.truncate_fully_and_start_at(0))
    env.fill(20)
    assert env.log.snapshots.offsets == env.log.segments.base_offsets[1:]


def test_old_files_wait_for_their_delay() -> None:
    env = filled()
    run(env.log.truncate_to(10))
    deleted = [name for name in env.files() if name.endswith(".deleted")]
    assert deleted
    assert env.log.deletion_deadline_s == pytest.approx(1.0)
    assert run(env.log.delete_due_files()) == 0
    env.clock.advance(1000)
    assert run(env.log.delete_due_files()) > 0
    assert [name for name in env.disk.list_directory(FOLDER) if name.endswith(".deleted")] == []
    assert env.log.deletion_deadline_s is None


def turns_of_truncation(batches: int) -> int:
    """How often other tasks run while the last of so many batches, all in one segment, is cut off."""
    env = LogOnDisk(LogConfig())
    for _ in range(batches):
        env.log.append_as_leader(make_batch(b"v"), 1)

    async def count() -> int:
        truncation, turns = asyncio.create_task(env.log.truncate_to(batches - 1)), 0
        while not truncation.done():
            await asyncio.sleep(0)
            turns += 1
        assert await truncation
        return turns

    return run(count())


def test_other_tasks_run_while_producers_are_rebuilt_from_a_large_segment() -> None:
    """A follower that cuts off one record replays its active segment: heartbeats must not wait for that."""
    assert turns_of_truncation(2000) >= turns_of_truncation(2) + 3
