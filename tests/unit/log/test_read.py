"""Reading: ranges, bounds, offsets by time, aborted transactions."""

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.logs.batches import T0, make_batch, records_of
from tests.support.logs.partition_logs import SMALL, LogOnDisk

from ottla.config.topic import LogConfig
from ottla.env import OpenMode, run_to_end
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.log.read import Isolation
from ottla.log.segments.segment import Segment
from ottla.records.compression import Codec
from ottla.records.patch import set_max_timestamp


def filled(batches: int = 30) -> LogOnDisk:
    env = LogOnDisk()
    env.fill(batches)
    return env


def test_every_offset_gives_the_batch_that_holds_it() -> None:
    env = filled()
    assert len(env.log.segments) > 2
    for offset in range(60):
        info = env.log.read(offset, 1)
        assert info.records is not None
        assert [record.offset for record in records_of(info.records.read())] == [offset - offset % 2, offset - offset % 2 + 1]


def test_reads_keep_to_max_bytes() -> None:
    env = filled()
    batch_bytes = env.log.segments.first.find(0).size  # type: ignore[union-attr]
    for max_bytes in (1, batch_bytes - 1, batch_bytes, batch_bytes + 1, 3 * batch_bytes):
        info = env.log.read(0, max_bytes)
        assert info.records is not None
        assert info.records.length == max(max_bytes, batch_bytes)
    torn = env.log.read(0, 10, min_one_batch=False)
    assert torn.first_batch_incomplete
    assert torn.records is not None
    assert torn.records.length == 10


def test_a_read_from_the_end_of_the_last_one_searches_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    env = LogOnDisk(LogConfig())
    env.fill(3)
    assert env.log.read(0, 1 << 20).records is not None
    env.fill(2)
    with monkeypatch.context() as patch:
        patch.setattr(Segment, "find", None)
        info = env.log.read(6, 1 << 20)
    assert info.records is not None
    assert [record.offset for record in records_of(info.records.read())] == [6, 7, 8, 9]
    short = env.log.read(6, info.records.length - 1)
    assert short.records is not None
    assert short.records.length == info.records.length - 1


@given(st.lists(st.tuples(st.sampled_from(["append", "read", "truncate"]), st.integers(0, 30)), max_size=40))
def test_reads_from_any_place_find_the_same_as_a_search(steps: list[tuple[str, int]]) -> None:
    env = LogOnDisk()
    for what, number in steps:
        end = env.log.log_end_offset
        if what == "append":
            env.fill(number % 4)
        elif what == "truncate":
            asyncio.run(env.log.truncate_to(end - number % (end + 1)))
        elif end:
            offset = end - 1 - number % end
            found = env.log.read(offset, 1 << 20)
            env.log.bound_places.clear()
            searched = env.log.read(offset, 1 << 20)
            assert found.records is not None
            assert searched.records is not None
            assert found._replace(records=None) == searched._replace(records=None)
            assert found.records.read() == searched.records.read()
            env.log.read(end - number % 3 if end > 2 else 0, 1 << 20)


def test_a_read_outside_the_log_fails_and_at_its_end_is_empty() -> None:
    env = filled(3)
    assert env.log.read(6, 100).records is None
    env.log.update_high_watermark(6)
    env.log.delete_records(2)
    for offset in (-1, 0, 1, 7):
        with pytest.raises(KafkaError, match=f"offset {offset} of topic-0") as refused:
            env.log.read(offset, 100)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert env.offsets() == [2, 3, 4, 5]


def test_consumers_stop_at_the_high_watermark() -> None:
    env = filled()
    for high_watermark in (0, 2, 20, 22, 58, 60):
        env.log.update_high_watermark(high_watermark)
        offsets = [record.offset for record in env.records(isolation=Isolation.HIGH_WATERMARK)]
        assert offsets == list(range(high_watermark))
        assert len(env.offsets()) == 60
    env.log.update_high_watermark(20)
    beyond = env.log.read(30, 100, Isolation.HIGH_WATERMARK)
    assert beyond.records is None
    assert beyond.high_watermark == 20


def test_high_watermark_rules() -> None:
    env = filled(5)
    assert env.log.high_watermark == 0
    assert env.log.increment_high_watermark(4)
    assert not env.log.increment_high_watermark(3)
    assert env.log.high_watermark == 4
    assert env.log.update_high_watermark(100) == 10
    assert env.log.update_high_watermark(2) == 2
    assert env.log.update_high_watermark(-5) == 0


def test_a_range_survives_truncation_only_where_its_bytes_do() -> None:
    env = filled(5)
    info = env.log.read(0, 100_000)
    assert info.records is not None
    env.append(b"more")
    assert [record.offset for record in records_of(info.records.read())] == list(range(10))


@settings(max_examples=examples(40), deadline=None)
@given(
    times=st.lists(st.integers(0, 50), min_size=1, max_size=60), probes=st.lists(st.integers(-2, 53), min_size=1, max_size=8)
)
def test_offsets_by_time_against_a_scan(times: list[int], probes: list[int]) -> None:
    env = LogOnDisk(SMALL)
    for time in times:
        env.append(b"x" * 100, b"y", timestamp=T0 + time)
    records = env.records()
    for probe in probes:
        wanted = next((record for record in records if record.timestamp >= T0 + probe), None)
        found = env.log.offset_for_time(T0 + probe)
        assert (found and found.offset) == (wanted and wanted.offset)
    largest = max(record.timestamp for record in records)
    found = env.log.max_timestamp_offset()
    assert found is not None
    assert (found.timestamp, found.offset) == (largest, next(r.offset for r in records if r.timestamp == largest))


def test_time_lookup_begins_at_the_log_start() -> None:
    env = filled()
    env.log.update_high_watermark(60)
    env.log.delete_records(31)
    found = env.log.offset_for_time(T0)
    assert found is not None
    assert found.offset == 31
    assert env.log.earliest_offset() == (-1, 31, 0)
    assert env.log.latest_offset() == (-1, 60, 0)


def lying_log(batches: int = 30) -> LogOnDisk:
    """A log whose headers claim later timestamps than any record has."""
    env = LogOnDisk(SMALL)
    for number in range(batches):
        batch = make_batch(Random(number).randbytes(200), codec=Codec.ZSTD, base_offset=number, leader_epoch=0)
        set_max_timestamp(batch, 0, T0 + 1000)
        env.log.append_as_follower(batch, 0)  # a leader corrects the header of a batch that it inspects
    assert len(env.log.segments) > 2
    return env


def test_a_search_by_time_walks_batches_whose_headers_lie() -> None:
    env = lying_log()
    assert env.log.offset_for_time(T0 + 500) is None
    env.append(b"late", timestamp=T0 + 600)
    found = env.log.offset_for_time(T0 + 500)
    assert found is not None
    assert (found.offset, found.timestamp) == (30, T0 + 600)


def test_a_search_by_time_goes_on_when_its_segments_are_deleted() -> None:
    env = lying_log()
    steps = env.log.search_by_time(T0 + 500)
    for _ in range(3):
        next(steps)
    env.log.update_high_watermark(30)
    env.log.delete_records(25)
    old = [segment for segment in env.log.segments if segment.base_offset < 20][:-1]
    assert asyncio.run(env.log.delete_segments(old)) == len(old)
    env.append(b"late", timestamp=T0 + 600)
    found = run_to_end(steps)
    assert found is not None
    assert found.offset == 30


def test_a_search_by_time_ends_when_the_log_is_truncated() -> None:
    env = lying_log()
    env.append(b"late", timestamp=T0 + 600)
    steps = env.log.search_by_time(T0 + 500)
    for _ in range(3):
        next(steps)
    asyncio.run(env.log.truncate_to(5))
    assert run_to_end(steps) is None


def test_a_failing_read_takes_the_log_offline() -> None:
    env = filled()
    env.disk.fail("read", "*.log")
    with pytest.raises(LogDirectoryFailed):
        env.log.read(0, 100)


# -- transactions


def test_read_committed_stops_at_the_first_open_transaction() -> None:
    env = LogOnDisk()
    env.append(b"before")
    env.append(b"in", producer=(1, 0, 0), transactional=True)
    env.append(b"after")
    env.log.update_high_watermark(3)
    assert env.log.last_stable_offset == 1
    assert [r.offset for r in env.records(isolation=Isolation.COMMITTED)] == [0]
    env.end_transaction(1)
    assert env.log.last_stable_offset == 1, "the marker is not yet on the replicas"
    env.log.update_high_watermark(4)
    assert env.log.last_stable_offset == 4
    assert [r.offset for r in env.records(isolation=Isolation.COMMITTED)] == [0, 1, 2, 3]
    assert env.log.read(0, 10_000, Isolation.COMMITTED).aborted == []


def test_a_read_lists_the_aborted_transactions_of_its_range() -> None:
    env = LogOnDisk()
    ends = {}
    for number in range(12):
        producer_id = number % 3
        first = env.append(b"x" * 150, producer=(producer_id, 0, number // 3), transactional=True)
        env.fill(1)
        ends[first] = env.end_transaction(producer_id, commit=number % 2 == 0)
    env.log.update_high_watermark(env.log.log_end_offset)
    assert len(env.log.segments) > 2
    aborted = [(first, last) for number, (first, last) in enumerate(ends.items()) if number % 2]
    for reopened in (False, True):
        if reopened:
            env.reopen()
            env.log.update_high_watermark(env.log.log_end_offset)
        for offset in range(env.log.log_end_offset):
            info = env.log.read(offset, 300, Isolation.COMMITTED)
            assert info.records is not None
            last_read = records_of(info.records.read())[-1].offset
            needed = [pair for pair in aborted if pair[1] >= offset and pair[0] <= last_read]
            assert info.aborted is not None
            got = [(txn.first_offset, txn.last_offset) for txn in info.aborted]
            assert set(needed) <= set(got) <= set(aborted)
        whole = env.log.aborted_transactions(0, env.log.log_end_offset)
        assert [(txn.first_offset, txn.last_offset) for txn in whole] == aborted


def test_recovery_rebuilds_the_transaction_index() -> None:
    env = LogOnDisk()
    for number in range(8):
        env.append(b"x" * 200, producer=(1, 0, number), transactional=True)
        env.end_transaction(1, commit=False)
    before = env.log.aborted_transactions(0, 100)
    assert len(before) == 8
    for name in env.files():
        if name.endswith(".txnindex"):
            env.disk.open(f"/data/topic-0/{name}", OpenMode.WRITE).truncate(0)
    env.crash()
    assert env.log.aborted_transactions(0, 100) == before
