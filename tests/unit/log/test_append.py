"""Appending as leader and as follower: offsets, epochs, refusals, producers, failed disks."""

import pytest
from tests.support.logs.batches import T0, make_batch
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.log.append import UnexpectedAppendOffset
from ottla.log.producers.append_checks import AppendOrigin
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker


def test_offsets_follow_one_another() -> None:
    env = LogOnDisk()
    assert [env.append(b"a", b"b"), env.append(b"c"), env.append(b"d", b"e", b"f")] == [0, 2, 3]
    assert env.log.log_end_offset == 6
    assert [(record.offset, record.value) for record in env.records()] == list(enumerate([b"a", b"b", b"c", b"d", b"e", b"f"]))


def test_the_leader_epoch_is_stamped_and_remembered() -> None:
    env = LogOnDisk()
    env.append(b"a", epoch=3)
    env.append(b"b", epoch=3)
    env.append(b"c", epoch=5)
    assert env.log.epochs.entries == [(3, 0), (5, 2)]
    assert env.log.end_offset_for_epoch(3) == (3, 2)
    assert env.log.end_offset_for_epoch(4) == (3, 2)
    assert env.log.end_offset_for_epoch(5) == (5, 3)
    assert env.log.end_offset_for_epoch(6) is None
    info = env.log.read(2, 1000)
    assert info.records is not None
    assert BatchView(info.records.read()).leader_epoch == 5


def test_append_time_is_set_and_reported() -> None:
    env = LogOnDisk(LogConfig(message_timestamp_type="LogAppendTime"))
    env.clock.advance(5000)
    info = env.log.append_as_leader(make_batch(b"a", timestamp=1), 0)
    assert info.append_time_ms == T0 + 5000
    assert [record.timestamp for record in env.records()] == [T0 + 5000]
    assert env.log.segments.active.max_timestamp == T0 + 5000


def test_a_retried_batch_gets_its_first_offsets() -> None:
    env = LogOnDisk()
    for number in range(7):
        env.append(b"a", b"b", producer=(9, 0, 2 * number))
    for number in range(2, 7):
        info = env.log.append_as_leader(make_batch(b"a", b"b", producer=(9, 0, 2 * number)), 0)
        assert (info.is_duplicate, info.first_offset, info.last_offset) == (True, 2 * number, 2 * number + 1)
    assert env.log.log_end_offset == 14
    with pytest.raises(KafkaError) as refused:
        env.append(b"a", b"b", producer=(9, 0, 2))
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert env.log.log_end_offset == 14


def test_a_refused_batch_leaves_nothing_behind() -> None:
    env = LogOnDisk()
    env.append(b"a", producer=(9, 0, 0))
    size = env.log.size_bytes
    with pytest.raises(KafkaError):
        env.append(b"b", producer=(9, 0, 5), epoch=4)
    assert env.log.size_bytes == size
    assert env.log.epochs.entries == [(0, 0)]
    assert env.append(b"b", producer=(9, 0, 1)) == 1


@pytest.mark.parametrize(
    ("config", "batch", "code"),
    [
        (LogConfig(max_message_bytes=100), make_batch(b"x" * 100), ErrorCode.MESSAGE_TOO_LARGE),
        (LogConfig(cleanup_policy=("compact",)), make_batch(b"no key"), ErrorCode.INVALID_RECORD),
        (LogConfig(message_timestamp_after_max_ms=10), make_batch(b"a", timestamp=T0 + 11), ErrorCode.INVALID_TIMESTAMP),
        (LogConfig(), make_batch(b"a", base_offset=5), ErrorCode.INVALID_RECORD),
        (LogConfig(), make_batch(b"a") + make_batch(b"b"), ErrorCode.INVALID_RECORD),
        (LogConfig(), make_batch(b"abc")[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        (LogConfig(), bytearray(), ErrorCode.INVALID_RECORD),
    ],
)
def test_invalid_batches_of_clients_are_refused(config: LogConfig, batch: bytearray, code: ErrorCode) -> None:
    env = LogOnDisk(config)
    with pytest.raises(KafkaError) as refused:
        env.log.append_as_leader(batch, 0)
    assert refused.value.code == code
    assert (env.log.log_end_offset, env.log.size_bytes, env.log.epochs.entries) == (0, 0, [])


def test_only_coordinators_write_markers() -> None:
    env = LogOnDisk()
    env.append(b"a", producer=(5, 0, 0), transactional=True)
    marker = build_end_marker(is_commit=True, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp_ms=T0)
    with pytest.raises(KafkaError) as refused:
        env.log.append_as_leader(bytearray(marker), 0)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert env.log.append_as_leader(marker, 0, AppendOrigin.COORDINATOR).first_offset == 1
    assert env.log.producers.first_undecided_offset is None


def test_the_topics_codec_replaces_the_producers() -> None:
    env = LogOnDisk(LogConfig(compression_type="gzip"))
    env.append(b"a" * 500, b"b" * 500)
    env.append(b"c" * 500, codec=Codec.ZSTD)
    info = env.log.read(0, 10_000)
    assert info.records is not None
    assert [view.codec for view in iterate_batches(info.records.read())] == [Codec.GZIP, Codec.GZIP]
    assert [record.value for record in env.records()] == [b"a" * 500, b"b" * 500, b"c" * 500]


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    env = LogOnDisk(LogConfig(segment_bytes=500))
    with pytest.raises(KafkaError) as refused:
        env.append(b"x" * 500)
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_rolls_when_the_segment_is_full() -> None:
    env = LogOnDisk()
    env.fill(40)
    bases = env.log.segments.base_offsets
    assert len(bases) > 3
    assert all(segment.size <= env.config.segment_bytes for segment in env.log.segments)
    assert env.log.flush_wanted_up_to == bases[-1]
    assert env.log.snapshots.offsets == bases[1:]
    assert env.offsets() == list(range(80))


def test_flush_is_needed_when_flush_messages_is_reached() -> None:
    env = LogOnDisk(LogConfig(flush_messages=3))
    needed = []
    for _ in range(4):
        info = env.log.append_as_leader(make_batch(b"a"), 0)
        needed.append(info.flush_needed)
        if info.flush_needed:
            env.flush()
    assert needed == [False, False, True, False]
    assert env.log.recovery_point == 3


def test_a_duplicate_of_an_unflushed_batch_needs_the_flush_too() -> None:
    env = LogOnDisk(LogConfig(flush_messages=1))

    def send() -> tuple[bool, bool]:
        info = env.log.append_as_leader(make_batch(b"a", producer=(7, 0, 0)), 0)
        return info.is_duplicate, info.flush_needed

    assert [send(), send()] == [(False, True), (True, True)]
    env.flush()
    assert send() == (True, False)


# -- followers


def test_a_follower_keeps_offsets_gaps_and_epochs() -> None:
    env = LogOnDisk()
    data = bytes(
        make_batch(b"a", b"b", base_offset=5, leader_epoch=1)
        + make_batch(b"c", base_offset=9, leader_epoch=1)
        + make_batch(b"d", base_offset=10, leader_epoch=2)
    )
    info = env.log.append_as_follower(data, leader_epoch=2)
    assert (info.first_offset, info.last_offset) == (5, 10)
    assert env.offsets() == [5, 6, 9, 10]
    assert env.log.epochs.entries == [(1, 5), (2, 10)]
    assert env.log.log_end_offset == 11


def test_a_follower_ignores_a_torn_last_batch() -> None:
    env = LogOnDisk()
    whole, torn = make_batch(b"a"), make_batch(b"b", base_offset=1)
    for cut in (len(torn) - 1, 61, 60, 1):
        env.log.append_as_follower(bytes(whole + torn[:cut]), leader_epoch=0)
        assert env.offsets() == [0]
        run(env.log.truncate_to(0))
    info = env.log.append_as_follower(b"", 0)
    assert info.first_offset == -1


def test_a_follower_stops_at_a_batch_of_a_later_epoch() -> None:
    env = LogOnDisk()
    data = bytes(
        make_batch(b"a", leader_epoch=1)
        + make_batch(b"b", base_offset=1, leader_epoch=3)
        + make_batch(b"c", base_offset=2, leader_epoch=1)
    )
    assert env.log.append_as_follower(data, leader_epoch=2).last_offset == 0
    assert env.log.log_end_offset == 1


def test_a_follower_refuses_what_it_has_already() -> None:
    env = LogOnDisk()
    env.fill(2)
    with pytest.raises(UnexpectedAppendOffset) as refused:
        env.log.append_as_follower(bytes(make_batch(b"a", b"b", base_offset=3)), 0)
    assert (refused.value.first_offset, refused.value.last_offset) == (3, 4)


def test_a_follower_refuses_disorder_and_damage() -> None:
    env = LogOnDisk()
    backwards = bytes(make_batch(b"a", b"b", base_offset=5) + make_batch(b"c", base_offset=6))
    with pytest.raises(KafkaError, match="out of order") as refused:
        env.log.append_as_follower(backwards, 0)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    damaged = make_batch(b"abc")
    damaged[-2] ^= 1
    with pytest.raises(KafkaError) as refused:
        env.log.append_as_follower(bytes(damaged), 0)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    assert env.log.size_bytes == 0


def test_a_follower_splits_a_large_append_over_segments() -> None:
    env = LogOnDisk()
    data = b"".join(bytes(make_batch(b"x" * 700, base_offset=n)) for n in range(7))
    assert len(data) > env.config.segment_bytes
    assert env.log.append_as_follower(data, 0).last_offset == 6
    assert len(env.log.segments) == 4
    assert env.offsets() == list(range(7))


def test_follower_takes_a_batch_larger_than_a_lowered_segment_bytes() -> None:
    """The leader has acknowledged it. As in Apache Kafka, the partition could never be replicated otherwise."""
    env = LogOnDisk(LogConfig(segment_bytes=500))
    batches = [make_batch(b"x" * size, base_offset=offset) for offset, size in enumerate((10, 2000, 10, 2000))]
    env.log.append_as_follower(b"".join(map(bytes, batches[:2])), 0)
    for batch in batches[2:]:
        env.log.append_as_follower(bytes(batch), 0)
    assert env.log.segments.base_offsets == [0, 1, 2, 3]
    env.crash()
    assert env.offsets() == [0, 1, 2, 3]


def test_a_follower_rolls_for_offsets_far_away() -> None:
    env = LogOnDisk()
    env.log.append_as_follower(bytes(make_batch(b"a")), 0)
    far = 2**31 + 5
    env.log.append_as_follower(bytes(make_batch(b"b", base_offset=far)), 0)
    assert env.log.segments.base_offsets == [0, far]
    assert env.offsets() == [0, far]
    assert env.crash().segments_removed == 0
    assert env.offsets() == [0, far]


def test_the_metadata_leader_appends_with_its_own_offsets_and_epoch() -> None:
    env = LogOnDisk()
    batches = bytes(make_batch(b"a", leader_epoch=4) + make_batch(b"b", base_offset=1, leader_epoch=4))
    info = env.log.append_as_leader(bytearray(batches), 4, AppendOrigin.RAFT_LEADER)
    assert (info.first_offset, info.last_offset) == (0, 1)
    with pytest.raises(KafkaError) as refused:
        env.log.append_as_leader(make_batch(b"c", base_offset=2, leader_epoch=3), 4, AppendOrigin.RAFT_LEADER)
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_a_follower_rolls_without_a_gap_between_segments() -> None:
    env = LogOnDisk()
    env.fill(5)
    env.log.append_as_follower(bytes(make_batch(b"x" * 1500, base_offset=100)), 0)
    assert env.log.segments.base_offsets == [0, 10]
    assert env.offsets() == [*range(10), 100]
    assert env.crash().notes == []
    assert env.offsets() == [*range(10), 100]


# -- failing disks


@pytest.mark.parametrize("keep_bytes", [0, 20])
def test_a_failed_append_is_not_visible_and_takes_the_log_offline(keep_bytes: int) -> None:
    env = LogOnDisk()
    env.fill(3)
    env.disk.fail("append", "*.log", keep_bytes=keep_bytes)
    with pytest.raises(LogDirectoryFailed, match="/data failed"):
        env.append(b"lost")
    assert env.log.log_end_offset == 6
    for call in (lambda: env.append(b"again"), lambda: env.log.read(0, 100), lambda: run(env.log.flush())):
        with pytest.raises(LogDirectoryFailed):
            call()
    env.crash()
    assert env.offsets() == list(range(6))


def test_a_failed_roll_takes_the_log_offline() -> None:
    env = LogOnDisk()
    env.fill(5)
    env.disk.fail("open", f"{FOLDER}/*.log")
    with pytest.raises(LogDirectoryFailed):
        env.fill(20)
    env.crash()
    assert env.offsets() == list(range(env.log.log_end_offset))
