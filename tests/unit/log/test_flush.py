"""Flushing: what survives a power loss, when a flush is due, and failing devices."""

import asyncio
import itertools

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.partition_logs import LogOnDisk, run

from ottla.config.topic import LogConfig
from ottla.errors import LogDirectoryFailed, OttlaError


def test_what_was_flushed_survives_a_power_loss() -> None:
    lost = 0
    for seed in range(40):
        env = LogOnDisk()
        env.disk.random.seed(seed)
        env.fill(10 + seed, epoch=seed)
        env.flush()
        flushed = env.log.log_end_offset
        assert env.recovery_point == flushed
        env.fill(10, epoch=seed + 1)
        end = env.log.log_end_offset
        env.crash(power_loss=True)
        assert flushed <= env.log.log_end_offset <= end
        left = env.offsets()
        assert left[:flushed] == list(range(flushed))
        bases = [*env.log.segments.base_offsets, env.log.log_end_offset]
        for base, following in itertools.pairwise(bases):
            in_segment = [offset for offset in left if base <= offset < following]
            assert in_segment == list(range(base, base + len(in_segment))), "not the first batches of the segment"
        assert (seed, 0) in env.log.epochs.entries
        lost += end - len(left)
        resumed = env.log.log_end_offset
        env.fill(3, epoch=seed + 2)
        env.reopen()
        assert env.offsets() == [*left, *range(resumed, env.log.log_end_offset)]
    assert lost, "no power loss removed anything: the test shows nothing"


def test_a_killed_process_loses_nothing() -> None:
    env = LogOnDisk()
    for _ in range(5):
        env.fill(13)
        end = env.log.log_end_offset
        report = env.crash()
        assert report.bytes_cut == 0
        assert env.offsets() == list(range(end))


def test_a_rolled_segment_can_be_flushed_alone() -> None:
    env = LogOnDisk()
    env.fill(12)
    wanted = env.log.flush_wanted_up_to
    assert wanted == env.log.segments.active.base_offset
    assert run(env.log.flush(wanted)) == wanted
    assert env.log.flush_wanted_up_to is None
    assert env.log.recovery_point == wanted < env.log.log_end_offset


def test_flush_ms_is_a_deadline() -> None:
    env = LogOnDisk(LogConfig(flush_ms=5000))
    assert env.log.flush_deadline_s is None
    env.clock.advance(2000)
    env.append(b"a")
    assert env.log.flush_deadline_s == pytest.approx(5.0)
    env.flush()
    assert env.log.flush_deadline_s is None
    env.append(b"b")
    assert env.log.flush_deadline_s == pytest.approx(7.0)


def test_an_idle_flush_costs_nothing() -> None:
    env = LogOnDisk()
    env.fill(5)
    env.flush()
    syncs = env.disk.counts["sync"]
    env.flush()
    assert env.disk.counts["sync"] == syncs


def test_a_second_flush_waits_for_the_first() -> None:
    for seed in range(30):
        env = LogOnDisk()
        env.disk.random.seed(seed)
        env.fill(12)
        run(hold_the_first_of_two_flushes(env))
        if seed % 2:  # both were cancelled; the next one must sync everything
            env.flush()
            assert env.recovery_point == 24
        flushed = env.recovery_point
        env.crash(power_loss=True)
        assert env.log.log_end_offset >= flushed
        assert env.offsets() == list(range(env.log.log_end_offset))


async def hold_the_first_of_two_flushes(env: LogOnDisk) -> None:
    """Stop the first flush before the file names are durable, let a second one run, and crash."""
    held: list[asyncio.Event] = []

    async def pause() -> None:
        if not env.log.names_unsynced and not held:
            held.append(asyncio.Event())
            await held[0].wait()
        await asyncio.sleep(0)

    env.disk.pause = pause
    flushes = [asyncio.ensure_future(env.log.flush()), asyncio.ensure_future(env.log.flush())]
    for _ in range(100):
        await asyncio.sleep(0)
    assert held, "the first flush never came to the names"
    assert not flushes[0].done()
    env.checkpoint()
    env.disk.pause = None
    for flush in flushes:
        flush.cancel()
    await asyncio.gather(*flushes, return_exceptions=True)


def test_the_recovery_point_stays_when_a_sync_fails() -> None:
    env = LogOnDisk()
    env.fill(5)
    env.flush()
    env.fill(5)
    env.disk.fail("sync", "*.log")
    with pytest.raises(LogDirectoryFailed):
        run(env.log.flush())
    assert env.log.recovery_point == 10
    with pytest.raises(LogDirectoryFailed):
        env.append(b"a")


def test_a_closed_log_says_so() -> None:
    env = LogOnDisk()
    env.fill(5)
    env.close()
    with pytest.raises(OttlaError, match="is closed"):
        env.append(b"a")
    with pytest.raises(OttlaError, match="is closed"):
        env.log.read(0, 10)


def test_a_clean_shutdown_survives_a_power_loss_right_after_it() -> None:
    for seed in range(20):
        env = LogOnDisk()
        env.disk.random.seed(seed)
        env.fill(25)
        env.append(b"p", producer=(4, 0, 0))
        env.close()
        env.disk = env.disk.crash(power_loss=True)
        report = env.load(clean=True)
        assert report.notes == []
        assert env.offsets() == list(range(51))
        assert env.log.append_as_leader(make_batch(b"p", producer=(4, 0, 0)), 0).is_duplicate


def test_indexes_of_old_segments_are_closed() -> None:
    env = LogOnDisk()
    env.fill(40)
    env.flush()
    for segment in list(env.log.segments)[:-1]:
        assert not segment.offset_index.is_open
        assert not segment.time_index.is_open
    assert env.offsets() == list(range(80))
