"""Decides on AssignReplicasToDirs: stores in which of its log directories a broker keeps its replicas. Pure.

Each replica succeeds or fails on its own. If its directory is offline, the replica leaves the ISR. If its old directory is gone
because the disk was replaced or retired, its new log is empty: it leaves ISR and ELR, or has to wait for a leader to copy from.

A directory that the broker neither has nor reports as failed is refused. Apache Kafka 4.3.0 stores it; here it would read as a
disk that was replaced since, and the log that is there as lost.
"""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid, uuid_text
from ottla.metadata.controller.brokers import check_broker_epoch
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import PartitionOf, allowed_election, change_of, find_partition
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import DIRECTORIES_FROM
from ottla.metadata.image.cluster import BrokerRegistration
from ottla.metadata.image.topics import NO_LEADER, PartitionState
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
        refusal = _refuse_directory(state, broker, directory.id)
        assigned = AssignReplicasToDirsResponseDirectoryData(id=directory.id)
        response.directories.append(assigned)
        for topic in directory.topics:
            of_topic = AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id)
            assigned.topics.append(of_topic)
            for partition in topic.partitions:
                result = AssignReplicasToDirsResponsePartitionData(partition_index=partition.partition_index)
                of_topic.partitions.append(result)
                if refusal is not None:
                    result.error_code = refusal
                    continue
                try:
                    decided = assign_directory(state, broker.id, topic.topic_id, partition.partition_index, directory.id)
                    records += decided.records
                except KafkaError as refused:
                    result.error_code = refused.code
    return Decision(response, records)


def _refuse_directory(state: ControllerState, broker: BrokerRegistration, directory_id: Uuid) -> int | None:
    if directory_id == DIRECTORY_LOST or broker.has_online_directory(directory_id):
        return None
    session = state.sessions.get(broker.id)
    is_reported = session is not None and session.epoch == broker.epoch and directory_id in session.offline_directories
    return None if is_reported else ErrorCode.LOG_DIR_NOT_FOUND


def _check_others(state: ControllerState, which: PartitionOf, broker: BrokerRegistration) -> None:
    """Refuse the new, empty log of a replica while nobody leads and another replica has kept its disk.

    With its directory known, the replica could be elected: as the last one in sync, as the last known leader, or as the first
    one in an unclean election. The others would truncate theirs to it, as in Apache Kafka 4.3.0.
    """
    partition = which.state
    brokers = state.image.cluster.brokers
    keepers = [
        replica
        for replica, directory_id in zip(partition.replicas, partition.directories, strict=True)
        if replica != broker.id and replica in brokers and not _is_replaced(brokers[replica], directory_id)
    ]
    if keepers:
        raise KafkaError(
            ErrorCode.LEADER_NOT_AVAILABLE,
            f"{which.topic.name}-{which.number} has no leader to copy from, and the disk of broker {broker.id} was replaced: "
            f"bring back the replicas in sync, or accept a loss and let one of {keepers} lead",
        )


def _starts_empty(partition: PartitionState, broker: BrokerRegistration) -> bool:
    """Whether the log that was in sync is gone, so that the replica's log in its new directory is another one.

    A clean shutdown does not rule that out: the directories that are left have its mark. An eligible replica in
    `DIRECTORY_LOST` has no log either. Its broker registered without that directory; with it, which has no mark, the
    registration would have been unclean and would have ended the eligibility.
    """
    directory_id = partition.directories[partition.replicas.index(broker.id)]
    if directory_id == DIRECTORY_LOST:
        return broker.id in partition.elr
    return _is_replaced(broker, directory_id)


def _is_replaced(broker: BrokerRegistration, directory_id: Uuid) -> bool:
    """Whether a broker has registered without the directory that a replica was in."""
    return directory_id not in (*broker.directories, DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED)


def assign_directory(state: ControllerState, broker_id: int, topic_id: Uuid, number: int, directory_id: Uuid) -> Decision[None]:
    """Store the directory in which a broker keeps a replica.

    The replica leaves the ISR if the directory is offline, ISR and ELR if its log there cannot be the one that was in sync. If
    nobody leads and it is eligible, it leads from now on.
    """
    if state.image.metadata_version < DIRECTORIES_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the cluster's metadata.version keeps no log directories of replicas")
    topic = state.image.topics.by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {uuid_text(topic_id)}")
    which = find_partition(state, topic.name, number)
    broker = state.image.cluster.brokers.get(broker_id)
    if broker is None or broker_id not in which.state.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {broker_id} has no replica of {topic.name}-{number}")
    change = change_of(state, which)
    change.directories[broker_id] = directory_id
    change.election = allowed_election(state, topic)
    is_online = broker.has_online_directory(directory_id)
    is_empty = is_online and _starts_empty(which.state, broker)
    if is_empty and which.state.leader == NO_LEADER:
        _check_others(state, which, broker)  # if no disk is left, nothing can be saved by waiting
    elif is_empty or not is_online:
        change.isr = [replica for replica in change.isr if replica != broker_id]
        change.unclean_shutdown_replicas = (broker_id,) if is_empty else ()
    record = change.build(topic_id, number)
    return Decision(None, [] if record is None else [record])
