"""A coordinator below min.insync.replicas refuses writes, goes on serving reads, and keeps its shard."""

import asyncio
from typing import Any

import pytest
from tests.support.nodes.held_partitions import HeldPartitions, virtual
from tests.support.nodes.transaction_node import TOPIC, TransactionNode
from tests.support.shards.tally_shard import TallyShard, record_of, tally_runtime

from ottla.broker.handlers.groups import consumer_group_heartbeat, heartbeat, join_group, offset_commit, offset_fetch
from ottla.broker.runtime.coordinators.hosted_shard import EXPIRE_RETRY_S
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.coordinator.contract import Effects, Instant, Reply
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic


async def opened() -> tuple[HeldPartitions, CoordinatorRuntime[TallyShard]]:
    """A coordinator with two replicas, both of which it needs. a=1 is committed."""
    held = await HeldPartitions.open()
    await held.make_topic(OFFSETS_TOPIC, 1, {"min.insync.replicas": 2}, replicas=(1, 2))
    runtime = tally_runtime(held)
    runtime.follow()
    assert await set_to(held, runtime, 1) == "a=1"
    return held, runtime


async def set_to(held: HeldPartitions, runtime: CoordinatorRuntime[TallyShard], number: int) -> object:
    """Set a to `number`; the follower fetches the record."""
    written = asyncio.ensure_future(runtime.call("a", lambda shard, reply, now: shard.set("a", number, reply, now)))
    await asyncio.sleep(0.01)
    partition = held.partition(OFFSETS_TOPIC)
    partition.follower_fetches(2, partition.log.log_end_offset, 0, -1)
    return await written


def test_write_is_refused_before_it_is_decided_and_reads_are_served() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        hosted = runtime.shard_at(0)
        await held.change(OFFSETS_TOPIC, 0, isr=[1])
        decided: list[int] = []

        def decide(shard: TallyShard, reply: Reply, now: Instant) -> Effects:
            decided.append(1)
            return shard.set("a", 2, reply, now)

        with pytest.raises(KafkaError, match="1 replica in sync, of 2") as refused:
            await runtime.call("a", decide)
        assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert decided == []
        assert await runtime.look("a", lambda shard, now: shard.numbers["a"]) == 1
        assert runtime.shard_at(0) is hosted
        await held.change(OFFSETS_TOPIC, 0, isr=[1, 2])
        assert await set_to(held, runtime, 3) == "a=3"
        assert runtime.shard_at(0) is hosted

    virtual(scenario())


def test_timeout_waits_until_enough_replicas_are_in_sync() -> None:
    async def scenario() -> None:
        held, runtime = await opened()
        hosted = runtime.shard_at(0)
        hosted.shard.timers.set("late", hosted.now().steady_ms + 100, lambda then: Effects([record_of("late", 1)]))
        hosted.submit(Effects())
        await held.change(OFFSETS_TOPIC, 0, isr=[1])
        await asyncio.sleep(5)
        await runtime.look("a", lambda shard, now: None)
        assert not hosted.is_over
        assert hosted.shard.numbers == {"a": 1}
        await held.change(OFFSETS_TOPIC, 0, isr=[1, 2])
        await asyncio.sleep(EXPIRE_RETRY_S + 0.1)
        assert hosted.shard.numbers == {"a": 1, "late": 1}

    virtual(scenario())


REFUSED = ErrorCode.COORDINATOR_NOT_AVAILABLE


def commit_of(offset: int) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
    return OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)])


def test_group_requests_that_read_are_served_and_others_refused() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()

        async def committed(offset: int) -> int:
            answer = await node.ask(offset_commit, commit_of(offset), 7)
            code: int = answer.topics[0].partitions[0].error_code
            return code

        async def code(handler: Any, request: Any, version: int) -> int:
            found: int = (await node.ask(handler, request, version)).error_code
            return found

        assert await committed(5) == 0
        hosted = node.coordinators.groups.shard_at(0)
        hosted.partition.min_isr = 2
        assert await committed(6) == REFUSED
        fetch = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])])
        fetched = await node.ask(offset_fetch, fetch, 7)
        assert fetched.topics[0].partitions[0].committed_offset == 5
        assert await code(heartbeat, HeartbeatRequest(group_id="g", member_id="m"), 4) == ErrorCode.UNKNOWN_MEMBER_ID
        join = JoinGroupRequest(
            group_id="new", session_timeout_ms=10_000, protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="p")]
        )
        assert await code(join_group, join, 5) == REFUSED
        for member_epoch, expected in ((0, REFUSED), (-1, REFUSED), (3, ErrorCode.UNSUPPORTED_VERSION)):
            beat = ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=member_epoch)
            assert await code(consumer_group_heartbeat, beat, 0) == expected
        assert node.coordinators.groups.shard_at(0) is hosted
        hosted.partition.min_isr = 1
        assert await committed(7) == 0

    virtual(scenario())


def test_transaction_requests_are_refused_until_replicas_are_back() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        assert (await node.produce("a", producer, 0)).error_code == 0
        hosted = node.host.shard_at(0)
        partition = node.held.partition(TRANSACTIONS_TOPIC)
        partition.min_isr = 2
        assert (await node.end("a", producer, True))[0] == REFUSED
        assert (await node.produce("a", producer, 0, index=1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS, "retriable"
        assert node.state("a") == "Ongoing"
        assert node.host.shard_at(0) is hosted
        partition.min_isr = 1
        assert (await node.end("a", producer, True))[0] == 0
        await asyncio.sleep(0.01)
        assert node.state("a") == "CompleteCommit"

    virtual(scenario())
