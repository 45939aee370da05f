"""Leaders elected on demand, and by the controller from time to time."""

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.errors.codes import ErrorCode
from ottla.metadata.controller import elections
from ottla.metadata.controller.elections import PREFERRED, UNCLEAN, balance_leaders, elect_leaders, elect_unclean_leaders
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.metadata_records import ConfigRecord, PartitionChangeRecord


def elect(cluster: ControllerCluster, kind: int, *partitions: tuple[str, int]) -> dict[str, int]:
    """The error codes by partition; without partitions, the election is for all."""
    wanted = [TopicPartitions(topic=name, partitions=[number]) for name, number in partitions] or None
    response = cluster.apply(elect_leaders(cluster.state, ElectLeadersRequest(election_type=kind, topic_partitions=wanted), 0))
    return {
        f"{each.topic}-{result.partition_id}": result.error_code
        for each in response.replica_election_results
        for result in each.partition_result
    }


@pytest.fixture
def cluster() -> ControllerCluster:
    """Two brokers; partition 0 of t is led by its second replica since the first was fenced for a while."""
    cluster = ControllerCluster(features={"eligible.leader.replicas.version": 0})
    cluster.add_broker(1)
    cluster.add_broker(2)
    cluster.create_topic("t", assignments=[[1, 2], [2, 1]])
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    return cluster


def join_isr(cluster: ControllerCluster, isr: list[int]) -> None:
    cluster.append([PartitionChangeRecord(topic_id=cluster.topic("t").id, partition_id=0, isr=isr)])


def test_a_preferred_leader_must_be_in_sync(cluster: ControllerCluster) -> None:
    assert elect(cluster, PREFERRED, ("t", 0)) == {"t-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    join_isr(cluster, [2, 1])
    epoch = cluster.partition("t").leader_epoch
    assert elect(cluster, PREFERRED, ("t", 0), ("t", 1)) == {"t-0": 0, "t-1": ErrorCode.ELECTION_NOT_NEEDED}
    assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch) == (1, epoch + 1)


def test_an_election_for_all_lists_only_partitions_that_needed_one(cluster: ControllerCluster) -> None:
    join_isr(cluster, [2, 1])
    assert elect(cluster, PREFERRED) == {"t-0": 0}
    assert elect(cluster, PREFERRED) == {}


def test_an_unclean_election_is_for_partitions_without_a_leader(cluster: ControllerCluster) -> None:
    assert elect(cluster, UNCLEAN, ("t", 0)) == {"t-0": ErrorCode.ELECTION_NOT_NEEDED}
    cluster.heartbeat(2, want_fence=True)
    assert cluster.partition("t").leader == -1
    assert elect(cluster, UNCLEAN, ("t", 0)) == {"t-0": 0}
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)
    cluster.heartbeat(1, want_fence=True)
    assert elect(cluster, UNCLEAN, ("t", 0)) == {"t-0": ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_partitions_return_to_their_preferred_leaders_when_these_are_in_sync(cluster: ControllerCluster) -> None:
    assert balance_leaders(cluster.state, 0) == (False, []), "broker 1 is not in sync"
    join_isr(cluster, [2, 1])
    assert cluster.apply(balance_leaders(cluster.state, 0)) is False
    assert [partition.leader for partition in cluster.topic("t").partitions.values()] == [1, 2]
    assert balance_leaders(cluster.state, 0) == (False, [])


def test_preferred_leader_that_is_fenced_or_shuts_down_is_left_alone(cluster: ControllerCluster) -> None:
    cluster.heartbeat(2, want_fence=True)
    cluster.append([PartitionChangeRecord(topic_id=cluster.topic("t").id, partition_id=1, isr=[1, 2], leader=1)])
    assert balance_leaders(cluster.state, 0) == (False, [])


def test_leaders_are_balanced_in_steps(cluster: ControllerCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "ELECTIONS_AT_ONCE_MAX", 2)
    cluster.create_topic("many", assignments=[[1, 2]] * 5)
    topic_id = cluster.topic("many").id
    cluster.append([PartitionChangeRecord(topic_id=topic_id, partition_id=number, leader=2) for number in range(5)])
    assert [cluster.apply(balance_leaders(cluster.state, 0)) for _ in range(3)] == [True, True, False]
    assert {partition.leader for partition in cluster.topic("many").partitions.values()} == {1}


def test_unclean_leaders_are_elected_where_the_topic_allows_it(cluster: ControllerCluster) -> None:
    cluster.heartbeat(2, want_fence=True)
    assert cluster.partition("t").leader == -1
    assert elect_unclean_leaders(cluster.state, 0) == (False, [])
    name = "unclean.leader.election.enable"
    cluster.append([ConfigRecord(resource_type=2, resource_name="t", name=name, value="true")])
    assert cluster.apply(elect_unclean_leaders(cluster.state, 0)) is False
    assert (cluster.partition("t").leader, cluster.partition("t").leader_recovery_state) == (1, 1)
    cluster.heartbeat(1, want_fence=True)
    assert elect_unclean_leaders(cluster.state, 0) == (False, []), "no replica is there"
