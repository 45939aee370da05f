"""Leaders elected on demand; directories of replicas."""

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.partitions import PREFERRED, UNCLEAN, assign_directory, elect_leaders
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.metadata_records import PartitionChangeRecord


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


def test_assigning_the_same_directory_again_writes_nothing() -> None:
    cluster = ControllerCluster()
    both = [directory_of(1), directory_of(1, 1)]
    cluster.add_broker(1, log_dirs=both)
    made = cluster.create_topic("t", 1, 1)
    cluster.apply(assign_directory(cluster.state, 1, made.id, 0, both[1]))
    assert cluster.partition("t").directories == (both[1],)
    assert cluster.partition("t").leader_epoch == 0, "who leads it has not changed"
    assert not assign_directory(cluster.state, 1, made.id, 0, both[1]).records


def test_a_directory_that_is_not_online_takes_the_replica_out_of_sync() -> None:
    cluster = ControllerCluster()
    cluster.add_broker(1)
    cluster.add_broker(2)
    made = cluster.create_topic("t", assignments=[[1, 2]])
    cluster.apply(assign_directory(cluster.state, 1, made.id, 0, Uuid(b"some other place")))
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))


def test_directories_of_unknown_replicas_are_refused() -> None:
    cluster = ControllerCluster()
    cluster.add_broker(1)
    cluster.add_broker(2)
    made = cluster.create_topic("t", assignments=[[1]])
    for broker_id, topic_id, number, code in (
        (1, Uuid(b"no such topic id"), 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (1, made.id, 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, made.id, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (7, made.id, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        with pytest.raises(KafkaError) as error:
            assign_directory(cluster.state, broker_id, topic_id, number, directory_of(broker_id))
        assert error.value.code == code
    old = ControllerCluster(16)
    with pytest.raises(KafkaError) as error:
        assign_directory(old.state, 1, made.id, 0, directory_of(1))
    assert error.value.code == ErrorCode.UNSUPPORTED_VERSION
