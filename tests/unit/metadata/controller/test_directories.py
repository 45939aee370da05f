"""AssignReplicasToDirs: each replica succeeds or fails on its own."""

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.directories import assign_replicas_to_dirs
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)

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
