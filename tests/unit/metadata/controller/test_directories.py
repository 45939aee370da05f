"""AssignReplicasToDirs: each replica succeeds or fails on its own."""

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_LOST, Uuid
from ottla.metadata.controller.directories import assign_directory, assign_replicas_to_dirs
from ottla.metadata.controller.elections import elect_leaders
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.metadata_records import PartitionChangeRecord

BOTH = [directory_of(1, 0), directory_of(1, 1)]


def request(epoch: int, *wanted: tuple[Uuid, Uuid, list[int]]) -> AssignReplicasToDirsRequest:
    """A request of broker 1 for (directory, topic, partitions)."""
    return AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=epoch,
        directories=[
            AssignReplicasToDirsRequestDirectoryData(
                id=directory,
                topics=[
                    AssignReplicasToDirsRequestTopicData(
                        topic_id=topic,
                        partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=number) for number in numbers],
                    )
                ],
            )
            for directory, topic, numbers in wanted
        ],
    )


def test_known_replicas_are_assigned_and_unknown_ones_refused() -> None:
    cluster = ControllerCluster()
    cluster.add_broker(1, log_dirs=BOTH)
    cluster.add_broker(2)
    mine = cluster.create_topic("mine", assignments=[[1], [1], [2]])
    unknown = Uuid(b"there is no such")
    epoch = cluster.state.image.cluster.brokers[1].epoch
    wanted = request(epoch, (BOTH[0], mine.id, [0, 9]), (BOTH[1], mine.id, [1, 2]), (BOTH[1], unknown, [0]))
    response = cluster.apply(assign_replicas_to_dirs(cluster.state, wanted, 0))
    codes = [[each.error_code for topic in directory.topics for each in topic.partitions] for directory in response.directories]
    assert codes == [
        [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER],
        [ErrorCode.UNKNOWN_TOPIC_ID],
    ]
    partitions = cluster.topic("mine").partitions
    assert [partitions[number].directories for number in (0, 1)] == [(BOTH[0],), (BOTH[1],)]


def test_old_metadata_version_is_refused() -> None:
    cluster = ControllerCluster(14)
    cluster.add_broker(1)
    with pytest.raises(KafkaError) as refused:
        assign_replicas_to_dirs(cluster.state, request(cluster.state.image.cluster.brokers[1].epoch), 0)
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION


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


@pytest.mark.parametrize("elr", [0, 1])
def test_replaced_disk_is_refused_until_another_replica_leads(elr: int) -> None:
    """Its log is empty, and the other replica would truncate its own to it. Apache Kafka 4.3.0 lets it lead."""
    cluster = ControllerCluster(features={"eligible.leader.replicas.version": elr})
    for broker in (1, 2):
        cluster.add_broker(broker)
    topic = cluster.create_topic("t", assignments=[[1, 2]])
    for broker in (2, 1):
        cluster.heartbeat(broker, want_fence=True)
    cluster.now_ms += 60_000
    replaced = directory_of(1, 7)
    cluster.add_broker(1, log_dirs=[replaced])
    with pytest.raises(KafkaError, match="t-0 has no leader to copy from, and the disk of broker 1 was replaced") as refused:
        assign_directory(cluster.state, 1, topic.id, 0, replaced)
    assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE
    cluster.add_broker(2)
    assert cluster.partition("t").leader == -1
    elect = ElectLeadersRequest(election_type=1, topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    cluster.apply(elect_leaders(cluster.state, elect, 0))
    assert cluster.partition("t").leader == 2
    cluster.apply(assign_directory(cluster.state, 1, topic.id, 0, replaced))
    assert cluster.partition("t").directories[0] == replaced


def test_replaced_disks_of_all_replicas_are_taken() -> None:
    """Nothing can be saved by waiting."""
    cluster = ControllerCluster()
    for broker in (1, 2):
        cluster.add_broker(broker)
    topic = cluster.create_topic("t", assignments=[[1, 2]])
    for broker in (2, 1):
        cluster.heartbeat(broker, want_fence=True)
    cluster.now_ms += 60_000
    for broker in (1, 2):
        cluster.add_broker(broker, log_dirs=[directory_of(broker, 7)])
    cluster.apply(assign_directory(cluster.state, 2, topic.id, 0, directory_of(2, 7)))
    assert cluster.partition("t").directories[1] == directory_of(2, 7)


def cluster_with_lost_directory() -> tuple[ControllerCluster, Uuid]:
    """Broker 2 is eligible for t-0, whose directory has failed. Broker 1 leads it alone, below min.insync.replicas."""
    cluster = ControllerCluster(features={"eligible.leader.replicas.version": 1})
    cluster.add_broker(1)
    cluster.add_broker(2, log_dirs=[directory_of(2, 0), directory_of(2, 1)])
    topic = cluster.create_topic("t", assignments=[[1, 2]], configs={"min.insync.replicas": "2"})
    cluster.apply(assign_directory(cluster.state, 2, topic.id, 0, directory_of(2, 0)))
    cluster.heartbeat(2, offline_log_dirs=[directory_of(2, 0)])
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))
    return cluster, topic.id


def restart_cleanly(cluster: ControllerCluster, broker_id: int, log_dirs: list[Uuid]) -> None:
    epoch = cluster.state.image.cluster.brokers[broker_id].epoch
    for _ in range(2):
        cluster.heartbeat(broker_id, want_shut_down=True)
    cluster.state.sessions.forget(broker_id)
    cluster.add_broker(broker_id, log_dirs=log_dirs, previous_broker_epoch=epoch)


@pytest.mark.parametrize("stored", [directory_of(2, 0), DIRECTORY_LOST])
def test_new_directory_after_a_clean_restart_without_the_old_one_ends_eligibility(stored: Uuid) -> None:
    """The directory that is left has the mark of the clean shutdown, but the log of t-0 in it is a new one."""
    cluster, topic_id = cluster_with_lost_directory()
    cluster.apply(assign_directory(cluster.state, 2, topic_id, 0, stored))
    restart_cleanly(cluster, 2, [directory_of(2, 1)])
    assert cluster.partition("t").elr == (2,)
    cluster.apply(assign_directory(cluster.state, 2, topic_id, 0, directory_of(2, 1)))
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())
    assert partition.directories[1] == directory_of(2, 1)
    cluster.heartbeat(1, want_fence=True)
    assert (cluster.partition("t").leader, cluster.partition("t").elr) == (-1, (1,))


@pytest.mark.parametrize("stored", [directory_of(2, 0), DIRECTORY_LOST])
def test_new_directory_after_a_clean_restart_without_the_old_one_waits_for_a_leader(stored: Uuid) -> None:
    cluster, topic_id = cluster_with_lost_directory()
    cluster.apply(assign_directory(cluster.state, 2, topic_id, 0, stored))
    restart_cleanly(cluster, 2, [directory_of(2, 1)])
    cluster.heartbeat(1, want_fence=True)
    with pytest.raises(KafkaError, match="has no leader to copy from"):
        assign_directory(cluster.state, 2, topic_id, 0, directory_of(2, 1))


def test_replica_in_sync_leaves_the_isr_with_its_replaced_directory() -> None:
    """A leader's proposal may cross the report of the failed directory."""
    cluster, topic_id = cluster_with_lost_directory()
    cluster.append([PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=[1, 2], eligible_leader_replicas=[])])
    cluster.apply(assign_directory(cluster.state, 2, topic_id, 0, directory_of(2, 1)))
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())


def test_move_between_live_directories_keeps_isr_and_elr() -> None:
    cluster = ControllerCluster(features={"eligible.leader.replicas.version": 1})
    cluster.add_broker(1)
    both = [directory_of(2, 0), directory_of(2, 1)]
    cluster.add_broker(2, log_dirs=both)
    topic = cluster.create_topic("t", assignments=[[2, 1]], configs={"min.insync.replicas": "2"})
    for directory in (*both, both[0]):
        cluster.apply(assign_directory(cluster.state, 2, topic.id, 0, directory))
        assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2, 1))
    restart_cleanly(cluster, 2, both)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))
    cluster.apply(assign_directory(cluster.state, 2, topic.id, 0, both[1]))
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))


@pytest.mark.parametrize("elr", [0, 1])
def test_replica_on_a_replaced_disk_leads_once_its_directory_is_known(elr: int) -> None:
    """It has been unfenced before: no other event would elect it until its next restart."""
    cluster = ControllerCluster(features={"eligible.leader.replicas.version": elr})
    cluster.add_broker(1)
    topic = cluster.create_topic("t", assignments=[[1]])
    cluster.heartbeat(1, want_fence=True)
    cluster.now_ms += 60_000
    cluster.add_broker(1, log_dirs=[directory_of(1, 7)])
    assert cluster.partition("t").leader == -1
    cluster.apply(assign_directory(cluster.state, 1, topic.id, 0, directory_of(1, 7)))
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.directories) == (1, (1,), (directory_of(1, 7),))


def test_one_report_of_an_offline_directory_changes_the_partition_once() -> None:
    cluster = ControllerCluster()
    cluster.add_broker(1, log_dirs=BOTH)
    cluster.add_broker(2)
    topic = cluster.create_topic("t", assignments=[[1, 2]])
    assert len(assign_directory(cluster.state, 1, topic.id, 0, Uuid(b"some other place")).records) == 1
