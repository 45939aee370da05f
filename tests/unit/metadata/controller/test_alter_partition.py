"""AlterPartition: what a leader may change, and every refusal."""

from typing import Any

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.alter_partition import alter_partition
from ottla.metadata.controller.reassignments import alter_reassignments
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)


def cluster_of(*brokers: int, **options: Any) -> ControllerCluster:
    cluster = ControllerCluster(**options)
    for broker_id in brokers:
        cluster.add_broker(broker_id)
    return cluster


@pytest.fixture
def cluster() -> ControllerCluster:
    """Brokers 1 to 4; partition 0 of t is led by 1, with 2 in sync and 3 not."""
    cluster = cluster_of(1, 2, 3, 4)
    cluster.create_topic("t", assignments=[[1, 2, 3]])
    assert propose(cluster, [1, 2]).error_code == ErrorCode.NONE
    return cluster


def proposal(cluster: ControllerCluster, isr: list[int], **fields: Any) -> AlterPartitionRequestPartitionData:
    """A proposal by a leader that knows the newest state; `fields` replace its parts, `epochs` the epochs of brokers."""
    partition = cluster.partition("t")
    epochs = {broker.id: broker.epoch for broker in cluster.state.image.cluster.brokers.values()} | fields.pop("epochs", {})
    known = {
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "leader_recovery_state": partition.leader_recovery_state,
        "new_isr_with_epochs": [BrokerState(broker_id=each, broker_epoch=epochs.get(each, -1)) for each in isr],
    }
    return AlterPartitionRequestPartitionData(**(known | fields))


def ask(
    cluster: ControllerCluster, *proposals: AlterPartitionRequestPartitionData, broker: int = 1, topic_id: Uuid | None = None
) -> list[AlterPartitionResponsePartitionData]:
    topic = AlterPartitionRequestTopicData(topic_id=topic_id or cluster.topic("t").id, partitions=list(proposals))
    epoch = cluster.state.image.cluster.brokers[broker].epoch
    request = AlterPartitionRequest(broker_id=broker, broker_epoch=epoch, topics=[topic])
    (answered,) = cluster.apply(alter_partition(cluster.state, request, cluster.now_ms)).topics
    return list(answered.partitions)


def propose(cluster: ControllerCluster, isr: list[int], broker: int = 1, **fields: Any) -> AlterPartitionResponsePartitionData:
    (result,) = ask(cluster, proposal(cluster, isr, **fields), broker=broker)
    return result


def test_accepted_change_is_answered_with_the_new_state(cluster: ControllerCluster) -> None:
    before = cluster.partition("t")
    result = propose(cluster, [1, 3, 2])
    after = cluster.partition("t")
    assert (result.error_code, result.leader_id, result.isr) == (0, 1, [1, 3, 2])
    assert after.isr == (1, 3, 2)
    assert result.leader_epoch == after.leader_epoch == before.leader_epoch
    assert result.partition_epoch == after.partition_epoch == before.partition_epoch + 1


def test_proposal_of_the_current_isr_changes_nothing(cluster: ControllerCluster) -> None:
    before = cluster.partition("t")
    assert propose(cluster, [1, 2]).partition_epoch == before.partition_epoch
    assert cluster.partition("t") == before


def test_isr_below_the_minimum_makes_its_former_members_eligible() -> None:
    cluster = cluster_of(1, 2, 3)
    cluster.create_topic("t", assignments=[[1, 2, 3]], configs={"min.insync.replicas": "2"})
    propose(cluster, [1])
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2, 3))
    propose(cluster, [1, 2])
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1, 2), ())


@pytest.mark.parametrize(
    ("isr", "fields", "code"),
    [
        ([1], {"partition_index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1], {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 2}, ErrorCode.NOT_CONTROLLER),
        ([1], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1], {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ([2], {"broker": 2}, ErrorCode.INVALID_REQUEST),
        ([2], {}, ErrorCode.INVALID_REQUEST),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1, 2, 2], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ([1, 2, 3], {"epochs": {3: 0}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_refused_proposal_changes_nothing(
    cluster: ControllerCluster, isr: list[int], fields: dict[str, Any], code: ErrorCode
) -> None:
    before = cluster.partition("t")
    assert propose(cluster, isr, **fields).error_code == code
    assert cluster.partition("t") == before


def test_epochs_are_checked_in_apaches_order(cluster: ControllerCluster) -> None:
    """A deposed leader must learn first that its epoch is over: with any other code it would ask again."""
    cluster.heartbeat(1, want_fence=True)
    partition = cluster.partition("t")
    assert partition.leader == 2
    old = {"leader_epoch": partition.leader_epoch - 1, "partition_epoch": partition.partition_epoch - 1}
    assert propose(cluster, [], broker=3, **old).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert propose(cluster, [], broker=3, **old | {"partition_epoch": 99}).error_code == ErrorCode.NOT_CONTROLLER


def test_fenced_stopping_and_unregistered_brokers_are_ineligible(cluster: ControllerCluster) -> None:
    cluster.heartbeat(3, want_fence=True)
    assert propose(cluster, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
    cluster.heartbeat(3)
    assert propose(cluster, [1, 2, 3]).error_code == ErrorCode.NONE
    cluster.create_topic("led-by-3", assignments=[[3, 1]])
    cluster.heartbeat(3, want_shut_down=True)
    assert cluster.state.image.cluster.brokers[3].in_controlled_shutdown
    assert propose(cluster, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert propose(cluster, [1, 2]).error_code == ErrorCode.NONE


def test_restarted_broker_gets_in_with_its_new_epoch_only(cluster: ControllerCluster) -> None:
    old_epoch = cluster.state.image.cluster.brokers[3].epoch
    cluster.now_ms += 9001
    for broker_id in (1, 2, 4):
        cluster.heartbeat(broker_id)
    cluster.add_broker(3)
    assert propose(cluster, [1, 2, 3], epochs={3: old_epoch}).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert propose(cluster, [1, 2, 3]).error_code == ErrorCode.NONE


def test_unchecked_epoch_is_accepted(cluster: ControllerCluster) -> None:
    assert propose(cluster, [1, 2, 3], epochs={1: -1, 2: -1, 3: -1}).isr == [1, 2, 3]
    (result,) = ask(cluster, proposal(cluster, [], new_isr=[1, 3]))  # as version 2 has it
    assert result.isr == [1, 3]


def test_unknown_topic_is_refused_partition_by_partition(cluster: ControllerCluster) -> None:
    results = ask(
        cluster, proposal(cluster, [1]), proposal(cluster, [1], partition_index=5), topic_id=Uuid(b"no such topic id")
    )
    assert [(each.partition_index, each.error_code) for each in results] == [
        (0, ErrorCode.UNKNOWN_TOPIC_ID),
        (5, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_stale_broker_epoch_refuses_the_request(cluster: ControllerCluster) -> None:
    with pytest.raises(KafkaError) as refused:
        alter_partition(cluster.state, AlterPartitionRequest(broker_id=1, broker_epoch=0), 0)
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_second_proposal_for_a_partition_meets_the_first(cluster: ControllerCluster) -> None:
    first, second = ask(cluster, proposal(cluster, [1]), proposal(cluster, [1, 2, 3]))
    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION)
    assert cluster.partition("t").isr == (1,)


def test_second_proposal_meets_the_first_if_the_topic_comes_twice(cluster: ControllerCluster) -> None:
    topic_id = cluster.topic("t").id
    topics = [
        AlterPartitionRequestTopicData(topic_id=topic_id, partitions=[proposal(cluster, isr)]) for isr in ([1], [1, 2, 3])
    ]
    broker_epoch = cluster.state.image.cluster.brokers[1].epoch
    request = AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch, topics=topics)
    first, second = (topic.partitions[0] for topic in cluster.apply(alter_partition(cluster.state, request, 0)).topics)
    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION)
    assert cluster.partition("t").isr == (1,)
    assert cluster.partition("t").partition_epoch == first.partition_epoch


def test_leader_reports_the_end_of_its_recovery() -> None:
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", assignments=[[1, 2]], configs={"unclean.leader.election.enable": "true"})
    propose(cluster, [1])
    cluster.heartbeat(1, want_fence=True)
    assert (cluster.partition("t").leader, cluster.partition("t").leader_recovery_state) == (2, 1)
    cluster.heartbeat(1)
    assert propose(cluster, [2, 1], broker=2).error_code == ErrorCode.INVALID_REQUEST, "nobody is in sync while it recovers"
    assert propose(cluster, [2], broker=2).leader_recovery_state == 1
    recovered = propose(cluster, [2, 1], broker=2, leader_recovery_state=0)
    assert (recovered.error_code, recovered.leader_recovery_state) == (ErrorCode.NONE, 0)
    assert cluster.partition("t").leader_recovery_state == 0


def test_new_isr_completes_a_reassignment_and_may_depose_the_sender(cluster: ControllerCluster) -> None:
    def reassign(*replicas: int) -> None:
        wanted = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=list(replicas))])
        request = AlterPartitionReassignmentsRequest(topics=[wanted])
        cluster.apply(alter_reassignments(cluster.state, request, cluster.now_ms))

    reassign(1, 4)
    assert cluster.partition("t").adding_replicas == (4,)
    kept = propose(cluster, [1, 2, 4])
    partition = cluster.partition("t")
    assert (kept.error_code, kept.isr, kept.leader_epoch) == (ErrorCode.NONE, [1, 4], partition.leader_epoch)
    assert (partition.replicas, partition.isr, partition.adding_replicas) == ((1, 4), (1, 4), ())
    assert (partition.removing_replicas, partition.leader_epoch) == ((), 1)
    reassign(3)
    deposed = propose(cluster, [1, 4, 3])
    assert deposed.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (cluster.partition("t").replicas, cluster.partition("t").leader) == ((3,), 3)
