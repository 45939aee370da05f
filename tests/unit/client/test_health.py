"""What is wrong with a cluster."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.test_cluster import ask_cluster

from ottla.client import health
from ottla.client.admin.cluster_state import ClusterDescription, NodeDescription
from ottla.client.admin.quorum import QuorumInfo, QuorumReplica, VoterEndpoint
from ottla.client.admin.topic_descriptions import PartitionDescription, TopicDescription
from ottla.client.health import ClusterState, ProblemKind, log_ends, partition_problems, problems_of, quorum_problems
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, TopicPartition
from ottla.wire.base import Message
from ottla.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


def voter(node: int, last_fetch: int | None) -> QuorumReplica:
    return QuorumReplica(node, ZERO_UUID, 10, last_fetch, last_fetch)


def quorum(leader: int, *voters: QuorumReplica) -> QuorumInfo:
    return QuorumInfo(leader, 3, 10, voters, (), {2: (VoterEndpoint("CONTROLLER", "two", 9093),)})


def partition(index: int, leader: int | None, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionDescription:
    return PartitionDescription(index, leader, 0, replicas, isr, ())


def topics(**named: list[PartitionDescription]) -> dict[str, TopicDescription]:
    return {name: TopicDescription(name, ZERO_UUID, False, tuple(each)) for name, each in named.items()}


def test_nothing_is_wrong() -> None:
    assert quorum_problems(quorum(1, voter(1, 9000), voter(2, 8000))) == []
    assert partition_problems(topics(orders=[partition(0, 1, (1, 2), (2, 1))]), frozenset({1, 2})) == []


def test_voters_that_do_not_follow_are_named_with_their_address() -> None:
    silent, new = quorum_problems(quorum(1, voter(1, 19_000), voter(2, 9_000), voter(3, None)))
    assert silent.text == "controller 2 at two:9093 does not answer: start it; its last fetch was 10 s ago"
    assert new.text == "controller 3 has not fetched from the leader 1: start it, or look again if it has just started"


def test_a_quorum_without_a_leader() -> None:
    [problem] = quorum_problems(quorum(-1, voter(1, None), voter(2, None)), "broker 3")
    assert problem.kind == ProblemKind.NO_CONTROLLER
    assert problem.text.startswith("broker 3 finds no leader of the metadata quorum: no change can be made until")
    assert "a majority of its voters (1 and 2 at two:9093) is up" in problem.text


def test_partitions_without_leader_and_those_that_miss_replicas() -> None:
    orders = [partition(0, None, (1, 2), ()), partition(1, 1, (1, 2, 3), (1,))]
    offline, under = partition_problems(topics(orders=orders), frozenset({1, 2}))
    assert offline.text == "orders-0 has no leader (replicas 1,2, ISR none)"
    assert under.text == (
        "orders-1 is under-replicated: broker 3 is down; broker 2 is up, but behind. To do: start broker 3; wait until "
        "broker 2 has caught up; if it does not, its log says why"
    )


def test_partitions_that_miss_the_same_replicas_are_one_problem() -> None:
    many = [partition(index, 1, (1, 3), (1,)) for index in range(54)]
    both, other = partition_problems(
        topics(orders=many, users=[partition(0, 1, (3, 1), (1,)), partition(1, 1, (1, 2), (1,))]), frozenset({1})
    )
    assert both.text == "55 partitions are under-replicated: broker 3 is down. To do: start broker 3"
    assert (both.partitions[0], both.partitions[-1], len(both.partitions)) == ("orders-0", "users-0", 55)
    assert other.text == "users-1 is under-replicated: broker 2 is down. To do: start broker 2"


def test_the_worst_comes_first() -> None:
    nodes = {1: NodeDescription(1, "one", 9092, None), 2: NodeDescription(2, "two", 9092, None, is_fenced=True)}
    described = ClusterDescription("id", 1, nodes, None)
    topic = TopicDescription("orders", ZERO_UUID, False, (partition(1, 1, (1, 2), (1,)), partition(0, None, (2,), ())))
    kinds = [each.kind for each in problems_of(ClusterState(described, None, {"orders": topic}))]
    assert kinds == [ProblemKind.OFFLINE_PARTITION, ProblemKind.FENCED_BROKER, ProblemKind.UNDER_REPLICATED]


def test_quorum_that_does_not_answer_is_a_problem_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a majority the broker holds the request back: the rest of the state must come all the same."""
    monkeypatch.setattr(health, "QUORUM_ANSWER_S", 0.05)
    brokers = [DescribeClusterBroker(broker_id=1, host="one", port=9092)]
    handlers: dict[type[Message], Callable[[Any, int], object]] = {
        DescribeClusterRequest: lambda *_: DescribeClusterResponse(cluster_id="id", controller_id=1, brokers=brokers),
        DescribeQuorumRequest: lambda *_: None,
    }
    state = ask_cluster(health.cluster_state, handlers)
    assert (state.described.cluster_id, list(state.described.nodes)) == ("id", [1])
    assert state.note is not None
    assert state.note.startswith("no active controller: what is shown is the last state that the broker at first:9092 knew; ")
    assert ProblemKind.NO_CONTROLLER in [each.kind for each in problems_of(state)]


@pytest.mark.parametrize("knows_fenced", [True, False])
def test_replicas_on_a_broker_that_is_not_registered(knows_fenced: bool) -> None:
    nodes = {1: NodeDescription(1, "one", 9092, None), 2: NodeDescription(2, "two", 9092, None, is_fenced=True)}
    held = topics(orders=[partition(0, 1, (1, 4), (1,)), partition(1, 1, (1, 2, 4), (1,))])
    found = problems_of(ClusterState(ClusterDescription("c", 1, nodes, None), None, held, knows_fenced=knows_fenced))
    texts = [each.text for each in found if each.kind == ProblemKind.UNREGISTERED_BROKER]
    said = (
        "broker 4 is not registered, and orders-0 and orders-1 have a replica there. To do: start it; if it is gone for "
        "good, move its replicas away: ottla reassign generate --brokers 1"
    )
    assert texts == [said] * knows_fenced


# Where a broker's own replicas end.


class OneBroker:
    """A cluster whose brokers have partition 0 of `orders`, and not partition 1."""

    class settings:
        request_timeout_ms = 1000

    def __init__(self) -> None:
        self.asked: list[tuple[int, ListOffsetsRequest]] = []

    async def once(self, broker_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        self.asked.append((broker_id, request))
        found = ListOffsetsPartitionResponse(partition_index=0, offset=57)
        other = ListOffsetsPartitionResponse(partition_index=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[found, other])])


def test_the_broker_itself_is_asked_and_refused_partitions_are_left_out() -> None:
    cluster: Any = OneBroker()
    wanted = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    assert asyncio.run(log_ends(cluster, 3, wanted)) == {wanted[0]: 57}
    ((broker, request),) = cluster.asked
    assert (broker, request.replica_id) == (3, -2), "followers answer only the debugging consumer"
    assert [each.partition_index for each in request.topics[0].partitions] == [0, 1]
