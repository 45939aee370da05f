"""Deleting segments from the log start, and replacing segments by compacted ones, also when killed half-way."""

import asyncio

import pytest
from tests.support.logs.batches import records_of
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.log.names import CLEANED_SUFFIX
from ottla.log.segments.deletion import SegmentsChanged
from ottla.log.segments.scan import checked_batches
from ottla.log.segments.segment import Segment


def filled(batches: int = 40) -> LogOnDisk:
    env = LogOnDisk()
    env.fill(batches)
    env.log.update_high_watermark(2 * batches)
    env.flush()
    return env


# -- deleting from the start


def test_the_log_starts_after_the_deleted_segments() -> None:
    env = filled()
    segments = list(env.log.segments)
    held = env.log.read(0, 300)
    assert run(env.log.delete_segments(segments[:2])) == 2
    assert env.log.log_start_offset == segments[2].base_offset
    assert env.offsets() == list(range(segments[2].base_offset, 80))
    assert env.log.snapshots.offsets[0] == segments[2].base_offset
    with pytest.raises(KafkaError):
        env.log.read(0, 100)
    env.clock.advance(1000)
    run(env.log.delete_due_files())
    assert held.records is not None
    assert [record.offset for record in records_of(held.records.read())] == [0, 1]
    assert not [name for name in env.files() if "deleted" in name]


def test_deleting_all_segments_rolls_a_new_one() -> None:
    env = filled()
    count = len(env.log.segments)
    assert run(env.log.delete_segments(list(env.log.segments))) == count
    assert env.log.segments.base_offsets == [80]
    assert (env.log.log_start_offset, env.log.log_end_offset) == (80, 80)
    assert run(env.log.delete_segments(list(env.log.segments))) == 0, "an empty segment stays"
    env.fill(2)
    assert env.offsets() == [80, 81, 82, 83]


def test_segments_above_the_high_watermark_are_not_deleted() -> None:
    env = LogOnDisk()
    env.fill(40)
    env.log.update_high_watermark(10)
    with pytest.raises(BrokenInvariant, match="past the high watermark"):
        run(env.log.delete_segments(list(env.log.segments)[:1]))
    with pytest.raises(BrokenInvariant, match="from the log's start"):
        run(env.log.delete_segments(list(env.log.segments)[1:2]))
    assert env.offsets() == list(range(80))


def test_delete_records_moves_the_start_up_to_the_high_watermark() -> None:
    env = filled()
    env.log.update_high_watermark(50)
    assert env.log.delete_records(33)
    assert not env.log.delete_records(20)
    assert env.offsets() == list(range(33, 80)), "a reader skips the records before the requested one"
    with pytest.raises(KafkaError) as refused:
        env.log.delete_records(51)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    env.checkpoint()
    env.crash()
    assert env.log.log_start_offset == 33


@pytest.mark.parametrize("power_loss", [False, True])
def test_killed_at_every_point_of_a_deletion(power_loss: bool) -> None:
    completed = 0
    for calls in range(200):
        env = filled()
        bases = env.log.segments.base_offsets
        env.disk.crash_before(calls)
        try:
            run(env.log.delete_segments(list(env.log.segments)[:3]))
            env.clock.advance(1000)
            run(env.log.delete_due_files())
            completed += 1
        except LogDirectoryFailed:
            pass
        env.crash(power_loss)
        assert env.log.log_start_offset in bases[:4]
        assert env.offsets() == list(range(env.log.log_start_offset, 80))
        if completed > 2:
            return
    pytest.fail("the deletion never completed")


# -- replacing


def compacted(env: LogOnDisk, old: list[Segment], keep: int = 4) -> Segment:
    """One segment with every `keep`-th batch of `old`, as compaction writes it."""
    new = Segment.create(env.disk, FOLDER, old[0].base_offset, env.config, now_ms=0, state=CLEANED_SUFFIX)
    for segment in old:
        for _, view in checked_batches(segment.file, 0, segment.size):
            if view.base_offset % (2 * keep) == 0:
                new.append(bytes(view.data), view.base_offset, view.last_offset, view.max_timestamp)
    new.close()
    return Segment(env.disk, FOLDER, old[0].base_offset, env.config, now_ms=0, state=CLEANED_SUFFIX)


def kept(upto: int) -> list[int]:
    return [offset for offset in range(80) if offset >= upto or offset % 8 in (0, 1)]


def test_readers_see_the_new_segment_and_offsets_stay() -> None:
    env = filled()
    old = list(env.log.segments)[:3]
    upto = list(env.log.segments)[3].base_offset
    run(env.log.replace_segments([compacted(env, old)], old))
    assert env.offsets() == kept(upto)
    assert env.log.segments.base_offsets[:2] == [0, upto]
    assert [name for name in env.files() if not name.endswith(".deleted") and name.startswith("0" * 20)] == [
        f"{0:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")
    ]
    between = env.log.read(2, 300)
    assert between.records is not None
    assert records_of(between.records.read())[0].offset == 8
    env.reopen()
    assert env.offsets() == kept(upto)


def test_a_result_for_segments_that_are_gone_is_refused() -> None:
    env = filled()
    old = list(env.log.segments)[:3]
    new = compacted(env, old)
    run(env.log.delete_segments(old[:1]))
    with pytest.raises(SegmentsChanged, match="compact it again"):
        run(env.log.replace_segments([new], old))
    assert env.offsets() == list(range(env.log.log_start_offset, 80))


def test_the_active_segment_is_never_replaced() -> None:
    env = filled()
    old = [env.log.segments.active]
    with pytest.raises(BrokenInvariant, match="active segment"):
        run(env.log.replace_segments([compacted(env, old)], old))


def test_appends_and_reads_go_on_while_segments_are_replaced() -> None:
    env = filled()
    old = list(env.log.segments)[:3]
    new = compacted(env, old)

    async def both() -> None:
        async def pause() -> None:
            env.fill(1)
            offsets = env.offsets()
            assert offsets[-1] == env.log.log_end_offset - 1
            assert {0, 1, 8, 9} <= set(offsets)
            for segment in list(env.log.segments)[:-1]:
                segment.release_indexes()  # as a flush does; the next reader must not create an empty index under an old name
            await asyncio.sleep(0)

        env.disk.pause = pause
        await env.log.replace_segments([new], old)
        env.disk.pause = None

    run(both())
    assert env.log.log_end_offset > 90
    assert not [name for name in env.files() if name.endswith((".swap", ".cleaned"))]


@pytest.mark.parametrize("power_loss", [False, True])
def test_killed_at_every_point_of_a_replacement(power_loss: bool) -> None:
    outcomes = set()
    completed = 0
    for calls in range(300):
        env = filled()
        old = list(env.log.segments)[:3]
        upto = list(env.log.segments)[3].base_offset
        run(env.disk.sync_directory(FOLDER))
        new = compacted(env, old)
        env.disk.crash_before(calls)
        try:
            run(env.log.replace_segments([new], old))
            completed += 1
        except LogDirectoryFailed:
            pass
        env.crash(power_loss)
        offsets = env.offsets()
        assert offsets in (list(range(80)), kept(upto)), calls
        outcomes.add(len(offsets))
        assert not [name for name in env.files() if name.endswith((".swap", ".cleaned", ".deleted"))]
        env.fill(1)
        env.reopen()
        assert env.offsets() == [*offsets, 80, 81]
        if completed > 2:
            break
    assert outcomes == {80, len(kept(upto))}
    assert completed > 2
