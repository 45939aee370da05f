"""Fetch on real logs: what is read, how much, when it waits, and the error code of each refusal."""

import asyncio
from typing import Any

import pytest
from tests.support.logs.batches import make_batch, records_of, sized_batch, values_of
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting
from tests.support.peers.fetching import bytes_of, fetch_of, found, node, part, values

from ottla.broker.handlers.data.fetch import RACK_AWARE
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.log.producers.append_checks import AppendOrigin, VerificationState
from ottla.records.control import build_end_marker
from ottla.wire.base import Message
from ottla.wire.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from ottla.wire.messages.metadata_records import RegisterBrokerRecord


@pytest.mark.parametrize("version", [4, 6, 7, 12, 13, 18])
def test_records_are_read_up_to_the_high_watermark(version: int) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t", 2)
        held.produced("t", 0, make_batch(b"a", b"b"))
        held.produced("t", 0, make_batch(b"c"))
        topic: Any = topic_id if version >= 13 else "t"
        response = held.fetch(fetch_of(topic, part(0), part(1)), version)
        assert values(response) == [[b"a", b"b", b"c"], []]
        first, second = found(response)
        assert (first.high_watermark, first.last_stable_offset, first.log_start_offset) == (3, 3, 0)
        assert (second.high_watermark, second.records) == (0, b"")
        assert first.aborted_transactions is None
        assert first.preferred_read_replica == -1

    virtual(scenario())


def test_an_offset_within_a_batch_brings_the_whole_batch() -> None:
    async def scenario() -> None:
        held = await node()
        held.produced("t", 0, make_batch(b"a", b"b", b"c"))
        assert values(held.fetch(fetch_of("t", part(offset=2)))) == [[b"a", b"b", b"c"]]

    virtual(scenario())


def test_byte_limits_hold_except_for_the_first_batch() -> None:
    async def scenario() -> None:
        held = await node()
        for index in range(3):
            for _ in range(3):
                held.produced("t", index, sized_batch(1000))
        lengths = [len(bytes_of(data)) for data in found(held.fetch(fetch_of("t", part(0), part(1), part(2), max_bytes=1)))]
        assert lengths[0] >= 900
        assert lengths[1:] == [0, 0]
        batch = lengths[0]
        request = fetch_of("t", part(0, max_bytes=batch), part(1, max_bytes=2 * batch), part(2), max_bytes=4 * batch)
        assert [len(bytes_of(data)) for data in found(held.fetch(request))] == [batch, 2 * batch, batch]
        request = fetch_of("t", part(0, max_bytes=5), part(1, max_bytes=5))
        assert [len(bytes_of(data)) for data in found(held.fetch(request))] == [batch, 0], "no half batches"
        request = fetch_of("t", part(0, offset=3), part(1, max_bytes=5))
        assert [len(bytes_of(data)) for data in found(held.fetch(request))] == [0, batch], "the first that has any"

    virtual(scenario())


def test_the_broker_caps_what_a_fetch_may_have() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open({"fetch.max.bytes": "1024"})
        await held.make_topic("t", 2)
        for index in range(2):
            for _ in range(3):
                held.produced("t", index, sized_batch(900))
        lengths = [len(bytes_of(data)) for data in found(held.fetch(fetch_of("t", part(0), part(1), min_bytes=5000)))]
        assert lengths == [1024, 0], "and min.bytes is not more than the cap, or nothing would ever be answered"

    virtual(scenario())


# Refusals


def test_unknown_partitions_get_an_error_without_ending_the_wait() -> None:
    async def scenario() -> None:
        held = await node()
        reply = waiting(held.fetch(fetch_of("t", part(9), part(0))))
        existing, missing = found(await reply)
        assert held.clock.monotonic_s() == pytest.approx(0.5)
        assert (missing.partition_index, missing.error_code) == (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert (missing.high_watermark, missing.log_start_offset, missing.aborted_transactions) == (-1, -1, [])
        assert existing.error_code == 0
        (unknown,) = found(held.fetch(fetch_of(Uuid(b"x" * 16), part(0)), 13))
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    virtual(scenario())


REFUSALS = {
    "beyond the end": (part(offset=100), {}, ErrorCode.OFFSET_OUT_OF_RANGE),
    "before the start": (part(offset=-1), {}, ErrorCode.OFFSET_OUT_OF_RANGE),
    "an old epoch": (part(current_leader_epoch=0), {}, ErrorCode.FENCED_LEADER_EPOCH),
    "an epoch to come": (part(current_leader_epoch=7), {}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    "no epoch, in other words": (part(offset=100, current_leader_epoch=-2), {}, ErrorCode.OFFSET_OUT_OF_RANGE),
    "an unknown last epoch": (part(last_fetched_epoch=7), {}, ErrorCode.OFFSET_OUT_OF_RANGE),
    "a replica": (part(), {"replica_id": 5}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    "a replica with epoch": (part(current_leader_epoch=1), {"replica_id": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_errors_are_answered_at_once(case: str) -> None:
    wanted, more, code = REFUSALS[case]

    async def scenario() -> None:
        held = await node()
        await held.change("t", 0, leader=1)
        held.produced("t", 0, make_batch(b"a"))
        refused, idle = found(held.fetch(fetch_of("t", wanted, part(1), **more)))
        assert refused.error_code == code
        assert (refused.high_watermark, refused.last_stable_offset, refused.log_start_offset) == (-1, -1, -1)
        assert (refused.aborted_transactions, refused.records) == (None, b"")
        assert idle.error_code == 0 or "replica_id" in more

    virtual(scenario())


def test_replica_id_is_read_from_the_replica_state_since_version_15() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t")
        state = ReplicaState(replica_id=5, replica_epoch=1)
        (data,) = found(held.fetch(fetch_of(topic_id, part(), replica_state=state), 15))
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    virtual(scenario())


def test_old_versions_get_error_codes_that_they_know() -> None:
    async def scenario() -> None:
        held = await node(compression_type="zstd")
        held.produced("t", 0, make_batch(b"a"))
        assert found(held.fetch(fetch_of("t", part()), 9))[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert found(held.fetch(fetch_of("t", part()), 10))[0].error_code == 0
        log = held.partition("t").log
        held.partitions.lose_directory(log.fail(OSError(5, "broken")), log)
        assert found(held.fetch(fetch_of("t", part()), 5))[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert found(held.fetch(fetch_of("t", part()), 6))[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR

    virtual(scenario())


def test_diverging_reader_gets_epoch_and_end_offset() -> None:
    async def scenario() -> None:
        held = await node()
        held.produced("t", 0, make_batch(b"a", b"b"))
        for _ in range(3):
            await held.change("t", 0, leader=1)
        held.produced("t", 0, make_batch(b"c"))
        (data,) = found(held.fetch(fetch_of("t", part(offset=5, last_fetched_epoch=1))))
        assert data.diverging_epoch is not None
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
        assert (data.error_code, data.records, data.high_watermark) == (0, b"", 3)
        (agreed,) = found(held.fetch(fetch_of("t", part(offset=2, last_fetched_epoch=0))))
        assert agreed.diverging_epoch is None
        assert values_of(bytes_of(agreed)) == [b"c"]

    virtual(scenario())


def test_recreated_topic_is_refused_under_its_old_id() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t")
        response: Any = held.fetch(fetch_of(topic_id, part(), session_epoch=0, max_wait_ms=0), 13)
        await held.delete_topic("t")
        session = {"session_id": response.session_id, "max_wait_ms": 0}
        (data,) = found(held.fetch(FetchRequest(session_epoch=1, **session), 13))
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await held.make_topic("t")
        (data,) = found(held.fetch(FetchRequest(session_epoch=2, **session), 13))
        assert data.error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    virtual(scenario())


def test_moved_partition_is_answered_with_the_new_leader() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t", replicas=(1, 2))
        await held.change("t", 0, leader=2)
        for version, hint in ((16, (2, 1)), (15, None)):
            (data,) = found(held.fetch(fetch_of(topic_id, part(current_leader_epoch=0)), version))
            assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
            told = data.current_leader
            assert (None if told is None else (told.leader_id, told.leader_epoch)) == hint

    virtual(scenario())


# Transactions


def test_read_committed_waits_for_the_end_of_a_transaction() -> None:
    async def scenario() -> None:
        held = await node()
        log = held.partition("t").log

        def append(data: bytearray, origin: AppendOrigin, verified_by: VerificationState | None = None) -> None:
            held.partition("t").append(data, 1, origin=origin, verified_by=verified_by)

        proof = log.producers.begin_verification(9, 0, 0, False, held.clock.now_ms())
        append(make_batch(b"aborted", producer=(9, 0, 0), transactional=True), AppendOrigin.COORDINATOR, proof)
        append(make_batch(b"plain"), AppendOrigin.CLIENT)
        uncommitted, committed = (fetch_of("t", part(), isolation_level=level, min_bytes=100) for level in (0, 1))
        assert values(held.fetch(uncommitted)) == [[b"aborted", b"plain"]]
        reply = waiting(held.fetch(committed))
        await asyncio.sleep(0.1)
        marker = build_end_marker(
            is_commit=False, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=held.clock.now_ms()
        )
        append(marker, AppendOrigin.COORDINATOR)
        (data,) = found(await reply)
        assert held.clock.monotonic_s() == pytest.approx(0.1)
        assert data.last_stable_offset == log.log_end_offset == 3
        assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()] == [(9, 0)]
        assert [record.offset for record in records_of(bytes_of(data))][:2] == [0, 1]

    virtual(scenario())


def test_refuse_makes_a_response_with_the_error_code() -> None:
    from ottla.broker.handlers.data.fetch import refuse
    from ottla.errors import KafkaError

    async def scenario() -> None:
        held = await node()
        response: Message = refuse(held.context(1, 12), fetch_of("t", part()), KafkaError(ErrorCode.POLICY_VIOLATION, "no"))
        assert isinstance(response, FetchResponse)
        assert response.error_code == ErrorCode.POLICY_VIOLATION

    virtual(scenario())


async def racks() -> HeldPartitions:
    held = await HeldPartitions.open({"replica.selector.class": RACK_AWARE})
    for broker, rack in ((1, "a"), (2, "b"), (3, "b")):
        await held.commit(RegisterBrokerRecord(broker_id=broker, broker_epoch=7, rack=rack, fenced=False))
    await held.make_topic("t", replicas=(1, 2, 3))
    for value in (b"a", b"b"):
        held.produce("t", 0, make_batch(value))
    return held


def test_consumer_is_sent_to_the_furthest_replica_in_its_rack_that_has_the_offset() -> None:
    async def scenario() -> None:
        held = await racks()
        partition = held.partition("t")

        def nearest(offset: int, rack: str) -> int:
            request = fetch_of("t", part(offset=offset), rack_id=rack, max_wait_ms=0)
            (data,) = found(held.fetch(request))
            assert data.preferred_read_replica < 0 or data.records == b""
            return data.preferred_read_replica

        assert nearest(0, "b") == -1, "no replica has fetched"
        partition.follower_fetches(2, 1, 0, 7)
        partition.follower_fetches(3, 2, 0, 7)
        assert nearest(0, "b") == 3
        assert nearest(0, "a") == nearest(0, "c") == nearest(0, "") == -1
        partition.follower_fetches(3, 0, 0, 7)
        assert nearest(1, "b") == 2
        assert nearest(2, "b") == -1, "neither has it"

    virtual(scenario())


def test_consumer_is_not_sent_to_a_replica_that_is_not_in_sync() -> None:
    async def scenario() -> None:
        held = await racks()
        partition = held.partition("t")
        for replica in (2, 3):
            partition.follower_fetches(replica, 1, 0, 7)
        await held.change("t", 0, isr=[1, 2])
        partition.follower_fetches(3, 2, 0, 7)
        request = fetch_of("t", part(offset=1), rack_id="b", max_wait_ms=0)
        assert [data.preferred_read_replica for data in found(held.fetch(request))] == [2]
        await held.change("t", 0, isr=[1])
        assert [data.preferred_read_replica for data in found(held.fetch(request))] == [-1]

    virtual(scenario())


def test_follower_answers_consumers_up_to_its_high_watermark() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        held.produce("t", 0, make_batch(b"a"), acks=1)
        held.produce("t", 0, make_batch(b"b"), acks=1)
        await held.change("t", 0, leader=2)
        partition = held.partition("t")
        partition.follow_offsets(1, 0)
        handled = held.fetch(fetch_of("t", part(0, current_leader_epoch=1)))
        assert values(handled) == [[b"a"]]
        (data,) = found(held.fetch(fetch_of("t", part(0)), version=10))
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "older consumers read from leaders only"
        (data,) = found(held.fetch(fetch_of("t", part(0, current_leader_epoch=0))))
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH

    virtual(scenario())


def test_consumer_that_waits_at_a_follower_is_woken_by_its_high_watermark() -> None:
    async def scenario() -> None:
        held, leader = await HeldPartitions.open(), await HeldPartitions.open()
        for each in (held, leader):
            await each.make_topic("t", replicas=(1, 2))
        leader.produce("t", 0, make_batch(b"a"), acks=1)
        await held.change("t", 0, leader=2)
        reply = waiting(held.fetch(fetch_of("t", part(0), max_wait_ms=10_000)))
        (data,) = found(leader.fetch(fetch_of("t", part(0), replica_id=2)))
        partition = held.partition("t")
        partition.append_as_follower(bytes_of(data), 1)
        await asyncio.sleep(0.1)
        assert not reply.done()
        partition.follow_offsets(1, 0)
        assert values(await reply) == [[b"a"]]
        assert held.clock.monotonic_s() < 1

    virtual(scenario())
