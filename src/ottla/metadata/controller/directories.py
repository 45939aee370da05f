"""Decides on AssignReplicasToDirs: stores in which of its log directories a broker keeps its replicas. Pure.

Each replica succeeds or fails on its own. If its directory is offline, the replica leaves the ISR.
"""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.brokers import check_broker_epoch
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.partitions import assign_directory
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import DIRECTORIES_FROM
from ottla.wire.base import Message
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)


def assign_replicas_to_dirs(
    state: ControllerState, request: AssignReplicasToDirsRequest, now_ms: int
) -> Decision[AssignReplicasToDirsResponse]:
    """Store the directories of the broker's replicas."""
    if state.image.metadata_version < DIRECTORIES_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the cluster's metadata.version keeps no log directories of replicas")
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    response = AssignReplicasToDirsResponse()
    records: list[Message] = []
    for directory in request.directories:
        assigned = AssignReplicasToDirsResponseDirectoryData(id=directory.id)
        response.directories.append(assigned)
        for topic in directory.topics:
            of_topic = AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id)
            assigned.topics.append(of_topic)
            for partition in topic.partitions:
                result = AssignReplicasToDirsResponsePartitionData(partition_index=partition.partition_index)
                of_topic.partitions.append(result)
                try:
                    decided = assign_directory(state, broker.id, topic.topic_id, partition.partition_index, directory.id)
                    records += decided.records
                except KafkaError as refused:
                    result.error_code = refused.code
    return Decision(response, records)
