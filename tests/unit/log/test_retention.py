"""Retention: Kafka's rules on time, size and the log's start; the active segment; the high watermark; files that follow."""

import asyncio
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.batches import T0
from tests.support.logs.partition_logs import FOLDER, SMALL, LogOnDisk, run

from ottla.config.topic import LogConfig
from ottla.errors import LogDirectoryFailed
from ottla.log.retention import Expired, apply_retention, expired_segments

KEEP = dataclasses.replace(SMALL, retention_ms=-1, retention_bytes=-1)


def log_with(batches: int = 40, **settings: object) -> LogOnDisk:
    """A log of several segments, all of it below the high watermark. Batches have two records, record n the time T0 + 10 n.

    The settings are applied once it is filled: its records have no keys, which a compacted log would refuse.
    """
    env = LogOnDisk(KEEP)
    env.fill(batches)
    env.config = dataclasses.replace(KEEP, **settings)  # type: ignore[arg-type]  # settings are the dataclass's own
    env.log.config = env.config
    env.log.update_high_watermark(env.log.log_end_offset)
    return env


def bases(expired: list[Expired]) -> list[int]:
    return [segment.base_offset for segment, _ in expired]


def test_without_limits_nothing_is_deleted() -> None:
    env = log_with()
    assert len(env.log.segments) > 3
    assert expired_segments(env.log, T0 + 10**15) == []
    assert run(apply_retention(env.log, T0 + 10**15)) == []


def test_retention_ms_counts_from_the_newest_record_of_a_segment() -> None:
    env = log_with(retention_ms=1000)
    first, second = list(env.log.segments)[:2]
    newest_ms = first.max_timestamp
    assert expired_segments(env.log, newest_ms + 1000) == []
    expired = expired_segments(env.log, newest_ms + 1001)
    assert bases(expired) == [0]
    assert expired[0].reason == "its newest record is 1001 ms old, retention.ms=1000"
    assert bases(expired_segments(env.log, second.max_timestamp + 1001)) == [0, second.base_offset]


def test_file_time_counts_only_where_no_record_has_one() -> None:
    env = LogOnDisk(dataclasses.replace(KEEP, retention_ms=1000))
    env.append(b"v", timestamp=-1)
    env.log.roll()
    env.append(b"v", timestamp=-1)
    env.log.update_high_watermark(2)
    assert env.log.segments.first.max_timestamp == -1
    assert expired_segments(env.log, T0 + 1000) == []
    assert "no record has a timestamp, and its file is 1001 ms old" in expired_segments(env.log, T0 + 1001)[0].reason


def test_record_times_count_and_file_times_do_not() -> None:
    env = log_with(retention_ms=1000)
    env.clock.jump(10**9)
    assert bases(expired_segments(env.log, T0)) == []
    env.append(b"v", timestamp=T0 + 10**9)
    env.log.update_high_watermark(env.log.log_end_offset)
    assert env.log.segments.active.base_offset not in bases(expired_segments(env.log, env.clock.now_ms()))


def test_a_segment_with_a_future_timestamp_keeps_those_after_it() -> None:
    env = LogOnDisk(dataclasses.replace(KEEP, retention_ms=1000, message_timestamp_after_max_ms=10**7))
    for timestamp in (T0, T0 + 10**7, T0):
        env.append(b"v", timestamp=timestamp)
        env.log.roll()
    env.log.update_high_watermark(3)
    assert bases(expired_segments(env.log, T0 + 5000)) == [0]


def test_size_keeps_at_least_retention_bytes() -> None:
    env = log_with()
    sizes = [segment.size for segment in env.log.segments]
    for limit in (0, 1, sizes[-1], sizes[-1] + 1, sum(sizes[1:]), sum(sizes[1:]) + 1, sum(sizes), sum(sizes) + 1):
        env.log.config = dataclasses.replace(KEEP, retention_bytes=limit)
        gone = len(expired_segments(env.log, T0))
        assert sum(sizes[gone:]) >= limit or gone == 0
        assert gone == len(sizes) or sum(sizes[gone + 1 :]) < limit


def test_size_reason_names_the_setting() -> None:
    env = log_with(retention_bytes=0)
    size = env.log.size_bytes
    assert expired_segments(env.log, T0)[0].reason == f"the log has {size} bytes, retention.bytes=0"


def test_an_expired_active_segment_is_rolled_and_deleted() -> None:
    env = log_with(retention_ms=1000)
    end = env.log.log_end_offset
    gone = run(apply_retention(env.log, T0 + 10**9))
    assert gone[-1].segment.base_offset != end
    assert env.log.segments.base_offsets == [end]
    assert env.log.log_start_offset == end
    assert env.log.size_bytes == 0
    env.append(b"next")
    assert env.offsets() == [end]


def test_an_empty_active_segment_stays() -> None:
    env = log_with(retention_ms=1000)
    run(apply_retention(env.log, T0 + 10**9))
    env.log.update_high_watermark(env.log.log_end_offset)
    assert run(apply_retention(env.log, T0 + 10**12)) == []
    assert len(env.log.segments) == 1


def test_segments_that_reach_the_high_watermark_are_kept() -> None:
    env = log_with(retention_ms=1000, retention_bytes=0)
    second, third = env.log.segments.base_offsets[1:3]
    for high_watermark, expected in ((second - 1, []), (second, [0]), (third - 1, [0]), (third, [0, second])):
        env.log.update_high_watermark(high_watermark)
        assert bases(expired_segments(env.log, T0 + 10**9)) == expected
    env.log.update_high_watermark(env.log.log_end_offset - 1)
    assert env.log.segments.active.base_offset not in bases(expired_segments(env.log, T0 + 10**9))


@pytest.mark.parametrize("policy", [("compact",), ()])
def test_without_the_delete_policy_only_the_log_start_counts(policy: tuple[str, ...]) -> None:
    env = log_with(cleanup_policy=policy, retention_ms=1, retention_bytes=0)
    assert expired_segments(env.log, T0 + 10**9) == []
    second = env.log.segments.base_offsets[1]
    env.log.delete_records(second - 1)
    assert expired_segments(env.log, T0 + 10**9) == []
    env.log.delete_records(second)
    expired = expired_segments(env.log, T0 + 10**9)
    assert bases(expired) == [0]
    assert expired[0].reason == f"all its records lie before the log's start {second}"


def test_compact_and_delete_together_expire() -> None:
    env = log_with(cleanup_policy=("compact", "delete"), retention_ms=1)
    assert bases(expired_segments(env.log, T0 + 10**9)) == env.log.segments.base_offsets


def test_reasons_follow_each_other() -> None:
    env = log_with()
    offsets = env.log.segments.base_offsets
    segments = list(env.log.segments)
    env.log.delete_records(offsets[1])
    left = sum(segment.size for segment in segments[1:])
    env.log.config = dataclasses.replace(KEEP, retention_bytes=left - segments[1].size, retention_ms=1000)
    reasons = [reason for _, reason in expired_segments(env.log, segments[2].max_timestamp + 1001)]
    assert [reason.split()[0] for reason in reasons] == ["all", "the", "its"]


def test_deleting_all_records_leaves_the_active_segment_to_the_policy() -> None:
    env = log_with(cleanup_policy=("compact",))
    env.log.delete_records(env.log.log_end_offset)
    run(apply_retention(env.log, T0))
    assert len(env.log.segments) == 1
    assert env.log.segments.active.size > 0


def test_files_are_renamed_at_once_and_removed_after_the_delay() -> None:
    env = log_with(retention_ms=1000)
    newest_ms = env.log.segments.first.max_timestamp
    held = env.log.read(0, 100)
    gone = run(apply_retention(env.log, newest_ms + 1001))
    assert len(gone) == 1
    assert "00000000000000000000.log.deleted" in env.files()
    assert "00000000000000000000.log" not in env.files()
    assert held.records is not None
    assert len(held.records.read()) > 0
    assert env.log.deletion_deadline_s == pytest.approx(env.clock.monotonic_s() + 1)
    assert run(env.log.delete_due_files()) == 0
    env.clock.advance(1000)
    assert run(env.log.delete_due_files()) == 1
    assert not [name for name in env.files() if name.endswith(".deleted")]
    assert env.log.deletion_deadline_s is None


def test_deleted_segments_stay_deleted_after_a_kill() -> None:
    env = log_with(retention_ms=1000)
    run(apply_retention(env.log, env.log.segments.first.max_timestamp + 1001))
    start = env.log.log_start_offset
    env.crash()
    assert env.log.log_start_offset == start
    assert not [name for name in env.files() if name.endswith(".deleted")]


def test_segments_are_chosen_under_the_lock() -> None:
    env = log_with(retention_ms=1000)

    async def delete_concurrently() -> list[Expired]:
        await env.log.reshaping.acquire()
        waiting = asyncio.ensure_future(apply_retention(env.log, T0 + 10**9))
        await asyncio.sleep(0)
        env.log.config = KEEP
        env.log.reshaping.release()
        return await waiting

    assert run(delete_concurrently()) == []
    assert env.log.log_start_offset == 0


def test_failing_disk_takes_the_log_offline() -> None:
    env = log_with(retention_ms=1000)
    env.disk.fail_directory(FOLDER)
    with pytest.raises(LogDirectoryFailed):
        run(apply_retention(env.log, T0 + 10**9))
    assert env.log.failure is not None


@given(
    st.integers(-1, 4000), st.integers(-1, 3000), st.integers(0, 80), st.integers(0, 80), st.integers(0, 3000), st.booleans()
)
def test_invariants_hold_for_any_settings(
    retention_bytes: int, retention_ms: int, high_watermark: int, log_start: int, age_ms: int, compact_only: bool
) -> None:
    env = log_with(20)
    log = env.log
    log.update_high_watermark(high_watermark)
    if log_start <= log.high_watermark:
        log.delete_records(log_start)
    policy = ("compact",) if compact_only else ("delete",)
    log.config = LogConfig(cleanup_policy=policy, retention_bytes=retention_bytes, retention_ms=retention_ms)
    start, size, end = log.log_start_offset, log.size_bytes, log.log_end_offset
    gone = run(apply_retention(log, T0 + age_ms))
    assert log.log_end_offset == end
    assert start <= log.log_start_offset <= log.high_watermark
    assert len(log.segments) >= 1
    assert log.size_bytes == size - sum(segment.size for segment, _ in gone)
    assert expired_segments(log, T0 + age_ms) == []
    if compact_only:
        assert log.log_start_offset == start
