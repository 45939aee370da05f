"""DescribeQuorum: what the leader reports, what brokers forward, and the refusals of others."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from tests.support.raft.replicas import elected, key

from ottla.broker.handlers.cluster import describe_quorum
from ottla.broker.requests.context import ConnectionInfo, RequestContext, future_of
from ottla.broker.requests.scheduler import Scheduler
from ottla.broker.runtime.quorum_facts import facts_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)


def described(
    is_leader: bool = True, topic: str = "__cluster_metadata", version: int = 2, channel: Any = None, is_controller: bool = True
) -> Any:
    replica = elected()
    replica.follower_fetched(key(2), 1, 6000)
    quorum = SimpleNamespace(is_leader=is_leader, facts=lambda: facts_of(replica, 1_000_000, 7000))
    connection = ConnectionInfo(1, "CONTROLLER", ("h", 1), is_controller)
    services = cast(Any, SimpleNamespace(quorum=quorum, channel=channel, scheduler=Scheduler(lambda: 0.0)))
    context = RequestContext(services, connection, DescribeQuorumRequest.KEY, version, 1, "c", 0.0)
    asked = DescribeQuorumRequestTopicData(topic_name=topic, partitions=[DescribeQuorumRequestPartitionData()])
    return describe_quorum.handle(context, DescribeQuorumRequest(topics=[asked]))


def test_leader_reports_voters_with_offsets_and_endpoints() -> None:
    response = described()
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    assert [(each.replica_id, each.log_end_offset) for each in partition.current_voters] == [(1, 1), (2, 1), (3, -1)]
    assert [node.node_id for node in response.nodes] == [1, 2, 3]
    assert described(version=1).nodes == []


def test_other_replicas_and_other_topics_are_refused() -> None:
    assert described(is_leader=False).topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert described(topic="t").topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_broker_forwards_to_the_leader_until_it_answers() -> None:
    answer = DescribeQuorumResponse()
    asked: list[int] = []

    async def forward(request: Any, timeout_ms: int) -> DescribeQuorumResponse:
        asked.append(timeout_ms)
        if len(asked) < 3:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no leader is known")
        return answer

    async def run() -> None:
        channel = SimpleNamespace(forward=forward)
        assert await future_of(described(is_leader=False, channel=channel, is_controller=False)) is answer

    asyncio.run(run())
    assert len(asked) == 3
