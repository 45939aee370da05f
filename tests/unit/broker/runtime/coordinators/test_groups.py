"""The group coordinator on its node: its shards follow the metadata, and members' memory is bounded."""

import asyncio
from typing import Any

import pytest
from tests.support.nodes.held_partitions import virtual
from tests.support.nodes.transaction_node import TransactionNode

from ottla.broker.runtime.coordinators import runtime
from ottla.broker.runtime.coordinators.load import load_shard
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.coordinator.contract import Caller, Effects, Instant, Reply
from ottla.coordinator.groups.memory import RECOUNT_MS
from ottla.coordinator.groups.shard import GroupShard
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.metadata_records import FeatureLevelRecord
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

CALLER = Caller("client", "/127.0.0.1", 9)


async def commit(groups: CoordinatorRuntime[GroupShard], topic: str) -> int:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)])

    def decide(shard: GroupShard, reply: Reply, now: Instant) -> Effects:
        return shard.offsets.commit(request, CALLER, reply, now)

    response: OffsetCommitResponse = await groups.call("g", decide)
    return response.topics[0].partitions[0].error_code


def test_loaded_shard_sees_metadata_changed_during_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        assert await commit(node.coordinators.groups, "t") == ErrorCode.NONE
        await node.initialise("a")
        may_load = asyncio.Event()

        async def load_later(*arguments: Any) -> int:
            await may_load.wait()
            return await load_shard(*arguments)

        monkeypatch.setattr(runtime, "load_shard", load_later)
        await node.crash()
        groups, transactions = node.coordinators.groups, node.coordinators.transactions
        await node.held.make_topic("later")
        await node.held.commit(FeatureLevelRecord(name="transaction.version", feature_level=1))
        assert groups.is_loading
        assert transactions.is_loading
        node.follow()
        may_load.set()
        while groups.is_loading or transactions.is_loading:
            await asyncio.sleep(0.01)
        assert await commit(groups, "later") == ErrorCode.NONE
        assert transactions.shard_for("a").shard.table.settings.transaction_version == 1

    virtual(scenario())


def test_memory_of_all_groups_members_is_bounded() -> None:
    async def scenario() -> None:
        settings = {"socket.request.max.bytes": "1000000", "queued.max.request.bytes": "1000000"}
        node = await TransactionNode.open(settings=settings | {"group.initial.rebalance.delay.ms": "0"})
        groups, member_ids = node.coordinators.groups, []

        async def join(group_id: str) -> None:
            request = JoinGroupRequest(group_id=group_id, session_timeout_ms=60_000, rebalance_timeout_ms=60_000)
            request.protocol_type = "consumer"
            request.protocols = [JoinGroupRequestProtocol(name="range", metadata=bytes(100_000))]
            caller = CALLER._replace(version=3)
            answer = await groups.call(group_id, lambda shard, reply, now: shard.join(request, caller, reply, now))
            member_ids.append(answer.member_id)

        for number in range(4):
            await join(f"g{number}")
        with pytest.raises(KafkaError) as refused:
            await join("one too many")
        assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        leave = LeaveGroupRequest(group_id="g0", members=[MemberIdentity(member_id=member_ids[0])])
        await groups.call("g0", lambda shard, reply, now: shard.leave(leave, CALLER, reply, now))
        await asyncio.sleep(RECOUNT_MS / 1000)
        await join("one too many")

    virtual(scenario())
