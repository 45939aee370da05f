"""Decides on ElectLeaders and on the log directories of replicas. Pure."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import Uuid, uuid_text
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import PartitionOf, change_of, leadership_changes
from ottla.metadata.controller.new_partitions import RECORDS_PER_REQUEST_MAX
from ottla.metadata.controller.partition_change import Election
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import DIRECTORIES_FROM
from ottla.metadata.image.topics import NO_LEADER
from ottla.wire.base import Message
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.messages.metadata_records import PartitionChangeRecord

PREFERRED, UNCLEAN = 0, 1


def elect_leaders(state: ControllerState, request: ElectLeadersRequest, now_ms: int) -> Decision[ElectLeadersResponse]:
    """Elect leaders for the partitions of the request, or for all. For all, the response omits those that need no election."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the election type {request.election_type} is unknown: 0 or 1 is meant")
    if request.topic_partitions is None:
        wanted = [(topic.name, list(topic.partitions)) for topic in state.image.topics.by_name.values()]
    else:
        wanted = [(each.topic, list(each.partitions)) for each in request.topic_partitions]
    response = ElectLeadersResponse()
    records: list[Message] = []
    for name, partitions in wanted:
        results: list[PartitionResult] = []
        for number in partitions:
            result = PartitionResult(partition_id=number, error_message=None)
            try:
                records.append(_elect(state, name, number, request.election_type))
            except KafkaError as error:
                result.error_code, result.error_message = error.code, str(error)
            if request.topic_partitions is not None or result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                results.append(result)
        response.replica_election_results.append(ReplicaElectionResult(topic=name, partition_result=results))
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"at most {RECORDS_PER_REQUEST_MAX} leaders can be elected at once: name the partitions"
        )
    return Decision(response, records)


def _elect(state: ControllerState, topic_name: str, number: int, election_type: int) -> PartitionChangeRecord:
    which = find_partition(state, topic_name, number)
    partition, what = which.state, f"partition {topic_name}-{number}"
    if election_type == PREFERRED and partition.leader == partition.replicas[0]:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{what} is led by its preferred leader, broker {partition.leader}")
    if election_type == UNCLEAN and partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{what} has a leader, broker {partition.leader}")
    change = change_of(state, which)
    change.election = Election.PREFERRED if election_type == PREFERRED else Election.UNCLEAN
    record = change.build(which.topic.id, number)
    if record is not None:
        return record
    if election_type == PREFERRED:
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"{what} cannot be led by broker {partition.replicas[0]}: it is not in sync, or not there",
        )
    raise KafkaError(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        f"{what} cannot be led: none of the brokers {list(partition.replicas)} is there",
    )


def find_partition(state: ControllerState, topic_name: str, number: int) -> PartitionOf:
    """The partition by topic name and number; UNKNOWN_TOPIC_OR_PARTITION if there is none."""
    topic = state.image.topics.by_name.get(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic_name}")
    partition = topic.partitions.get(number)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic_name} has {counted(len(topic.partitions), 'partition')}, and no number {number}",
        )
    return PartitionOf(topic, number, partition)


def assign_directory(state: ControllerState, broker_id: int, topic_id: Uuid, number: int, directory_id: Uuid) -> Decision[None]:
    """Store the directory in which a broker keeps a replica. If that directory is offline, the replica leaves the ISR."""
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
    record = change.build(topic_id, number)
    records: list[Message] = [] if record is None else [record]
    if not broker.has_online_directory(directory_id):
        records += leadership_changes(state, [which], leaving=broker_id)
    return Decision(None, records)
