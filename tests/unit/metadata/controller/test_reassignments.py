"""Reassignments that are started, changed, completed and cancelled."""

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.alter_partition import alter_partition
from ottla.metadata.controller.reassignments import alter_reassignments
from ottla.metadata.controller.topics import create_partitions
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.metadata_records import PartitionChangeRecord


@pytest.fixture
def cluster() -> ControllerCluster:
    """Three brokers; partition 0 of t is on the first two, in sync."""
    cluster = ControllerCluster()
    for broker_id in (1, 2, 3):
        cluster.add_broker(broker_id)
    cluster.create_topic("t", assignments=[[1, 2]])
    return cluster


def alter(cluster: ControllerCluster, replicas: list[int] | None, *, number: int = 0, same_factor: bool = False) -> int:
    """The error code for the partition."""
    wanted = ReassignablePartition(partition_index=number, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=not same_factor, topics=[ReassignableTopic(name="t", partitions=[wanted])]
    )
    response = cluster.apply(alter_reassignments(cluster.state, request, 0))
    assert response.error_code == 0
    assert response.allow_replication_factor_change is not same_factor
    ((result,),) = (topic.partitions for topic in response.responses)
    assert result.partition_index == number
    return result.error_code


def replicas_of(cluster: ControllerCluster) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """All replicas, the added ones, the removed ones."""
    partition = cluster.partition("t")
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def join_isr(cluster: ControllerCluster, isr: list[int]) -> None:
    cluster.append([PartitionChangeRecord(topic_id=cluster.topic("t").id, partition_id=0, isr=isr)])


def propose_isr(cluster: ControllerCluster, isr: list[int]) -> int:
    """The error code with which the leader's proposal of this ISR is answered."""
    partition, brokers = cluster.partition("t"), cluster.state.image.cluster.brokers
    proposal = AlterPartitionRequestPartitionData(
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=brokers[each].epoch) for each in isr],
    )
    request = AlterPartitionRequest(
        broker_id=partition.leader,
        broker_epoch=brokers[partition.leader].epoch,
        topics=[AlterPartitionRequestTopicData(topic_id=cluster.topic("t").id, partitions=[proposal])],
    )
    return cluster.apply(alter_partition(cluster.state, request, 0)).topics[0].partitions[0].error_code


def test_reassigning_to_the_current_replicas_changes_nothing(cluster: ControllerCluster) -> None:
    before = cluster.partition("t")
    assert alter(cluster, [1, 2]) == 0
    assert cluster.partition("t") == before


def test_a_new_order_of_replicas_completes_at_once(cluster: ControllerCluster) -> None:
    assert alter(cluster, [2, 1]) == 0
    assert replicas_of(cluster) == ((2, 1), (), ())


def test_removing_a_replica_completes_at_once(cluster: ControllerCluster) -> None:
    assert alter(cluster, [2]) == 0
    assert replicas_of(cluster) == ((2,), (), ())
    assert cluster.partition("t").leader == 2


def test_partitions_added_during_a_reassignment_have_its_final_count(cluster: ControllerCluster) -> None:
    assert alter(cluster, [3, 1]) == 0
    assert len(cluster.partition("t").replicas) == 3
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2, assignments=None)])
    assert cluster.apply(create_partitions(cluster.state, request, 0)).results[0].error_code == 0
    assert len(cluster.topic("t").partitions[1].replicas) == 2


def test_a_partition_has_new_and_old_replicas_until_it_is_reassigned(cluster: ControllerCluster) -> None:
    assert alter(cluster, [3, 1]) == 0
    assert replicas_of(cluster) == ((3, 1, 2), (3,), (2,))
    assert cluster.partition("t").isr == (1, 2)


def test_cancelling_a_reassignment_restores_the_replicas(cluster: ControllerCluster) -> None:
    alter(cluster, [3, 1])
    join_isr(cluster, [1, 2, 3])
    assert alter(cluster, None) == 0
    assert replicas_of(cluster) == ((1, 2), (), ())
    assert cluster.partition("t").isr == (1, 2)


def test_cancelling_is_refused_if_no_former_replica_is_in_sync(cluster: ControllerCluster) -> None:
    alter(cluster, [3])
    join_isr(cluster, [3])
    assert alter(cluster, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert replicas_of(cluster) == ((3, 1, 2), (3,), (1, 2))


def test_cancelling_elects_uncleanly_where_that_is_allowed() -> None:
    cluster = ControllerCluster()
    for broker_id in (1, 2):
        cluster.add_broker(broker_id)
    cluster.create_topic("t", assignments=[[1]], configs={"unclean.leader.election.enable": "true"})
    alter(cluster, [2])
    join_isr(cluster, [2])
    assert alter(cluster, None) == 0
    assert replicas_of(cluster) == ((1,), (), ())
    assert (cluster.partition("t").isr, cluster.partition("t").leader) == ((1,), 1)


def six_brokers(*, isr: list[int]) -> ControllerCluster:
    """Partition 0 of t moves from the brokers 1, 2, 3 to 4, 5, 6, and has these in sync."""
    cluster = ControllerCluster()
    for broker_id in range(1, 7):
        cluster.add_broker(broker_id)
    cluster.create_topic("t", assignments=[[1, 2, 3]])
    assert alter(cluster, [4, 5, 6]) == 0
    join_isr(cluster, isr)
    return cluster


@pytest.mark.parametrize("isr", [[1, 2, 3], [1, 2, 3, 4], [1, 2], [1]])
def test_going_back_ends_at_once_if_nothing_is_lost_by_it(isr: list[int]) -> None:
    cluster = six_brokers(isr=isr)
    assert alter(cluster, [1, 2, 3]) == 0
    assert replicas_of(cluster) == ((1, 2, 3), (), ())
    assert cluster.partition("t").isr == tuple(replica for replica in isr if replica != 4)


def test_going_back_keeps_an_added_replica_in_sync_until_the_former_ones_are() -> None:
    cluster = six_brokers(isr=[1, 4])
    assert alter(cluster, [1, 2, 3]) == 0
    assert replicas_of(cluster) == ((1, 2, 3, 4), (), (4,))
    assert propose_isr(cluster, [1, 4, 2, 3]) == 0
    assert replicas_of(cluster) == ((1, 2, 3), (), ())
    assert cluster.partition("t").isr == (1, 2, 3)


def test_a_replica_that_was_to_be_removed_stays_if_the_new_target_names_it() -> None:
    cluster = ControllerCluster()
    for broker_id in (1, 2, 3, 4):
        cluster.add_broker(broker_id)
    cluster.create_topic("t", assignments=[[1, 2, 3]])
    alter(cluster, [1, 2, 4])
    assert alter(cluster, [1, 2, 3, 4]) == 0
    assert replicas_of(cluster) == ((1, 2, 3, 4), (4,), ())
    assert propose_isr(cluster, [1, 2, 3, 4]) == 0
    assert replicas_of(cluster) == ((1, 2, 3, 4), (), ())


def test_a_reassignment_replaced_by_another_removes_what_it_added() -> None:
    cluster = six_brokers(isr=[1, 2, 3])
    assert alter(cluster, [1, 2, 4]) == 0
    assert replicas_of(cluster) == ((1, 2, 4, 3), (4,), (3,))
    assert alter(cluster, None) == 0, "the first three are still known as the former replicas"
    assert set(replicas_of(cluster)[0]) == {1, 2, 3}


def test_the_same_target_again_changes_nothing() -> None:
    cluster = six_brokers(isr=[1, 2, 3, 4])
    before = cluster.partition("t")
    assert alter(cluster, [4, 5, 6]) == 0
    assert cluster.partition("t") == before


@pytest.mark.parametrize(
    ("replicas", "number", "code"),
    [
        ([1], 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, 0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refused(cluster: ControllerCluster, replicas: list[int] | None, number: int, code: ErrorCode) -> None:
    before = cluster.partition("t")
    assert alter(cluster, replicas, number=number) == code
    assert cluster.partition("t") == before


def test_a_changed_replication_factor_is_refused_if_not_allowed(cluster: ControllerCluster) -> None:
    assert alter(cluster, [3], same_factor=True) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert alter(cluster, [3, 1], same_factor=True) == 0
    assert alter(cluster, [2, 3], same_factor=True) == 0, "replicas that are being removed do not count"


def test_partition_that_comes_twice_in_a_request_is_refused() -> None:
    cluster = ControllerCluster()
    for broker_id in (1, 2, 3):
        cluster.add_broker(broker_id, log_dirs=[directory_of(broker_id, 0), directory_of(broker_id, 1)])
    cluster.create_topic("t", assignments=[[1, 2]])
    before = cluster.partition("t")
    wanted = [ReassignablePartition(partition_index=0, replicas=replicas) for replicas in ([1, 2, 3], [2, 1])]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=[each]) for each in wanted])
    response = cluster.apply(alter_reassignments(cluster.state, request, 0))
    assert [topic.partitions[0].error_code for topic in response.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert cluster.partition("t") == before
