"""Produce on real logs: what is appended, what is answered, and which code each refusal has."""

from typing import Any

import pytest
from tests.support.logs.batches import T0, make_batch, records_of, values_of
from tests.support.nodes.held_partitions import HeldPartitions, only_answer, virtual, waiting

from ottla.broker.handlers.data import produce
from ottla.broker.requests.context import CloseConnection, Pending
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.log.read import Isolation
from ottla.records.compression import Codec
from ottla.sim.disk import Fault
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def read_all(held: HeldPartitions, topic: str, index: int = 0) -> list[bytes | None]:
    log = held.partition(topic, index).log
    info = log.read(log.log_start_offset, 1 << 30, Isolation.HIGH_WATERMARK)
    return [] if info.records is None else values_of(info.records.read())


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [3, 8, 12, 13])
def test_a_batch_is_appended_and_answered_at_once(acks: int, version: int) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t", 2)
        topic: Any = topic_id if version >= 13 else "t"
        first = held.produced(topic, 1, make_batch(b"a", b"b"), acks, version)
        second = held.produced(topic, 1, make_batch(b"c"), acks, version)
        assert (first.index, first.error_code, first.base_offset, first.log_append_time_ms, first.log_start_offset) == (
            1,
            0,
            0,
            -1,
            0,
        )
        assert second.base_offset == 2
        assert read_all(held, "t", 1) == [b"a", b"b", b"c"]
        assert held.partition("t", 1).log.high_watermark == 3

    virtual(scenario())


def test_the_records_are_written_from_the_buffer_they_came_in() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        held.produced("t", 0, make_batch(b"first"))
        frame = bytearray(b"head") + make_batch(b"second")
        request = ProduceRequest(acks=1, topic_data=[topic_of("t", (0, memoryview(frame)[4:]))])
        assert only_answer(produce.handle(held.context(0, 9), request)).base_offset == 1
        (record,) = records_of(bytes(frame[4:]))
        assert record.offset == 1, "the offset is patched into the frame itself"

    virtual(scenario())


def test_without_acks_nothing_is_answered_and_an_error_ends_the_connection() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        assert held.produce("t", 0, make_batch(b"a"), acks=0) is None
        assert read_all(held, "t") == [b"a"]
        with pytest.raises(CloseConnection, match=r"acks=0 failed for 1 partition\..*no partition t-9"):
            held.produce("t", 9, make_batch(b"a"), acks=0)
        with pytest.raises(CloseConnection):
            produce.refuse(
                held.context(0, 9),
                ProduceRequest(acks=0, topic_data=[topic_of("t", (0, None))]),
                KafkaError(ErrorCode.POLICY_VIOLATION, "no"),
            )

    virtual(scenario())


def topic_of(name: str, *partitions: tuple[int, Any]) -> TopicProduceData:
    return TopicProduceData(name=name, partition_data=[PartitionProduceData(index=i, records=r) for i, r in partitions])


def damaged(batch: bytearray) -> bytearray:
    batch[-1] ^= 1
    return batch


REFUSALS = {
    "no such topic": ("nope", 0, make_batch(b"a"), {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "no such partition": ("t", 7, make_batch(b"a"), {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "no such id": (Uuid(b"x" * 16), 0, make_batch(b"a"), {"version": 13}, ErrorCode.UNKNOWN_TOPIC_ID),
    "acks 2": ("t", 0, make_batch(b"a"), {"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
    "no records": ("t", 0, None, {}, ErrorCode.INVALID_RECORD),
    "empty records": ("t", 0, b"", {}, ErrorCode.INVALID_RECORD),
    "two batches": ("t", 0, make_batch(b"a") + make_batch(b"b"), {}, ErrorCode.INVALID_RECORD),
    "nonsense": ("t", 0, bytearray(b"\xff" * 100), {}, ErrorCode.CORRUPT_MESSAGE),
    "damage": ("t", 0, damaged(make_batch(b"a")), {}, ErrorCode.CORRUPT_MESSAGE),
    "too large": ("t", 0, make_batch(b"a" * 2_000_000), {}, ErrorCode.MESSAGE_TOO_LARGE),
    "an internal topic": ("__consumer_offsets", 0, make_batch(b"a", key=b"k"), {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "zstd too early": ("t", 0, make_batch(b"a", codec=Codec.ZSTD), {"version": 6}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "led elsewhere": ("elsewhere", 0, make_batch(b"a"), {}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    "without a leader": ("leaderless", 0, make_batch(b"a"), {}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    "from the future": ("t", 0, make_batch(b"a", timestamp=T0 + 10**9), {}, ErrorCode.INVALID_TIMESTAMP),
    "a gap in the sequence": ("t", 0, make_batch(b"a", producer=(5, 0, 9)), {}, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    "an old producer epoch": ("t", 0, make_batch(b"a", producer=(6, 0, 1)), {}, ErrorCode.INVALID_PRODUCER_EPOCH),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str) -> None:
    topic, index, records, more, code = REFUSALS[case]

    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        await held.make_topic("__consumer_offsets", 1, {"cleanup.policy": "compact"})
        await held.make_topic("elsewhere", replicas=(2,))
        await held.make_topic("leaderless", replicas=(1,), leader=-1)
        held.produced("t", 0, make_batch(b"x", producer=(5, 0, 0)))
        held.produced("t", 0, make_batch(b"x", producer=(6, 1, 0)))
        end = held.partition("t").log.log_end_offset
        answer = held.produced(topic, index, records, **more)
        assert answer.error_code == code
        assert (answer.base_offset, answer.log_append_time_ms) == (-1, -1)
        assert answer.error_message
        assert held.partition("t").log.log_end_offset == end

    virtual(scenario())


def test_a_repeat_of_an_idempotent_batch_gets_the_offset_it_had() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        held.produced("t", 0, make_batch(b"a", producer=(5, 0, 0)))
        held.produced("t", 0, make_batch(b"b", producer=(5, 0, 1)))
        assert held.produced("t", 0, make_batch(b"a", producer=(5, 0, 0))).base_offset == 0
        assert read_all(held, "t") == [b"a", b"b"]

    virtual(scenario())


def test_of_a_partition_that_comes_twice_the_last_batch_counts() -> None:
    """As Apache Kafka does; the topic comes once in the answer."""

    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 2)
        views = [memoryview(make_batch(value)) for value in (b"first", b"last", b"other")]
        request = ProduceRequest(acks=1, topic_data=[topic_of("t", (0, views[0])), topic_of("t", (0, views[1]), (1, views[2]))])
        response: Any = produce.handle(held.context(0, 9), request)
        assert [[part.index for part in entry.partition_responses] for entry in response.responses] == [[0, 1]]
        assert read_all(held, "t") == [b"last"]
        assert read_all(held, "t", 1) == [b"other"]

    virtual(scenario())


def test_partitions_are_answered_each_for_itself() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 2)
        views = [memoryview(make_batch(b"a")), memoryview(damaged(make_batch(b"b")))]
        request = ProduceRequest(
            acks=-1, topic_data=[topic_of("t", (0, views[0]), (1, views[1])), topic_of("nope", (0, views[0]))]
        )
        response: Any = produce.handle(held.context(0, 9), request)
        codes = [[part.error_code for part in entry.partition_responses] for entry in response.responses]
        assert codes == [[0, ErrorCode.CORRUPT_MESSAGE], [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]

    virtual(scenario())


# Waiting


def test_the_effective_minimum_in_sync_is_no_more_than_the_replicas() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("one", 1, {"min.insync.replicas": 3})
        assert held.produced("one", 0, make_batch(b"a")).error_code == 0
        await held.make_topic("two", 1, {"min.insync.replicas": 3}, replicas=(1, 2))
        await held.change("two", 0, isr=[1])
        assert held.produced("two", 0, make_batch(b"a")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert held.produced("two", 0, make_batch(b"a"), acks=1).error_code == 0
        assert held.partition("two").log.high_watermark == 0, "too few replicas have it for anybody to read it"

    virtual(scenario())


def test_acks_all_waits_for_the_replicas_in_sync() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        reply = waiting(held.produce("t", 0, make_batch(b"a", b"b")))
        partition = held.partition("t")
        partition.follower_fetches(2, 1, 0, -1)
        assert (reply.done(), partition.log.high_watermark) == (False, 1)
        partition.follower_fetches(2, 2, 0, -1)
        answer = only_answer(await reply)
        assert (answer.error_code, answer.base_offset) == (0, 0)
        assert not partition.ack_waits
        assert held.produced("t", 0, make_batch(b"c"), acks=1).error_code == 0, "acks=1 does not wait"

    virtual(scenario())


def test_a_replica_that_leaves_the_in_sync_ones_is_not_waited_for() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        reply = waiting(held.produce("t", 0, make_batch(b"a")))
        await held.change("t", 0, isr=[1])
        assert only_answer(await reply).error_code == 0

    virtual(scenario())


def test_waiting_ends_when_the_time_is_over() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        reply = waiting(held.produce("t", 0, make_batch(b"a"), timeout_ms=700))
        answer = only_answer(await reply)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert held.clock.monotonic_s() == pytest.approx(0.7)
        assert not held.partition("t").ack_waits

    virtual(scenario())


@pytest.mark.parametrize("what", ["deleted", "another leader", "failed disk"])
def test_waiting_ends_when_the_partition_goes(what: str) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        reply = waiting(held.produce("t", 0, make_batch(b"a")))
        if what == "deleted":
            await held.delete_topic("t")
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif what == "another leader":
            await held.change("t", 0, leader=2)
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            log = held.partition("t").log
            held.partitions.lose_directory(log.fail(OSError(5, "broken")), log)
            code = ErrorCode.KAFKA_STORAGE_ERROR
        assert only_answer(await reply).error_code == code

    virtual(scenario())


def test_nobody_is_answered_on_a_connection_that_has_gone() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        pending = held.produce("t", 0, make_batch(b"a"))
        assert isinstance(pending, Pending)
        pending.abandon()
        assert not held.partition("t").ack_waits

    virtual(scenario())


@pytest.mark.parametrize("acks", [1, -1])
def test_flush_messages_is_waited_for_and_nobody_reads_before_it(acks: int) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 1, {"flush.messages": 2})
        assert held.produced("t", 0, make_batch(b"a"), acks=acks).error_code == 0
        log = held.partition("t").log
        assert (log.recovery_point, log.high_watermark) == (0, 1)
        reply = waiting(held.produce("t", 0, make_batch(b"b"), acks=acks))
        assert (log.recovery_point, log.high_watermark) == (0, 1)
        assert only_answer(await reply).base_offset == 1
        assert (log.recovery_point, log.high_watermark) == (2, 2)

    virtual(scenario())


def test_a_flush_that_fails_takes_the_directory_offline() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 1, {"flush.messages": 1})
        reply = waiting(held.produce("t", 0, make_batch(b"a")))
        held.disk.faults.append(Fault("sync", held.partition("t").log.folder + "/*"))
        assert only_answer(await reply).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert held.produced("t", 0, make_batch(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    virtual(scenario())


def test_disk_failure_in_a_request_leaves_later_appends_unacknowledged() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 3, {"flush.messages": 1})
        folders = [held.partition("t", index).log.folder for index in range(3)]
        assert folders == ["/a/t-0", "/b/t-1", "/a/t-2"]
        held.disk.faults.append(Fault("append", "/a/t-2/*"))
        batches = [(index, memoryview(make_batch(b"v"))) for index in (0, 2, 1)]
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic_of("t", *batches)])
        log = held.partition("t", 1).log
        reply = waiting(produce.handle(held.context(0, 12), request))
        assert not reply.done(), "the wait for t-0 is over, but t-1 is not flushed yet"
        answers = {answer.index: answer.error_code for answer in (await reply).responses[0].partition_responses}
        assert answers == {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: 0, 2: ErrorCode.KAFKA_STORAGE_ERROR}
        assert log.recovery_point == 1

    virtual(scenario())


def test_a_request_whose_partitions_have_all_failed_meanwhile_is_answered() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 3, {"flush.messages": 1})
        held.disk.faults.append(Fault("append", "/a/t-2/*"))
        batches = [(index, memoryview(make_batch(b"v"))) for index in (0, 2)]
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic_of("t", *batches)])
        response = await waiting(produce.handle(held.context(0, 12), request))
        assert [answer.error_code for answer in response.responses[0].partition_responses] == [56, 56]
        assert held.clock.monotonic_s() < 1

    virtual(scenario())


def test_where_to_go_instead_is_told() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        await held.change("t", 0, leader=2)
        answer = held.produced("t", 0, make_batch(b"a"), version=10)
        assert answer.current_leader is not None
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
        assert held.produced("t", 0, make_batch(b"a"), version=9).current_leader is None

    virtual(scenario())
