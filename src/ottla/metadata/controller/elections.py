"""Decides on elections that no broker's coming or going causes: ElectLeaders, and those of the controller itself. Pure.

From time to time the controller gives partitions back to their preferred leaders, and elects leaders out of sync where the
topic allows that. A decision holds at most `ELECTIONS_AT_ONCE_MAX` of these elections: other requests come between two.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import PartitionOf, change_of, find_partition, partitions_where, without_leader
from ottla.metadata.controller.new_partitions import RECORDS_PER_REQUEST_MAX
from ottla.metadata.controller.partition_change import Election
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.controller.topic_settings import unclean_election_allowed
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.wire.base import Message
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.messages.metadata_records import PartitionChangeRecord

PREFERRED, UNCLEAN = 0, 1
ELECTIONS_AT_ONCE_MAX = 1000


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
                records.append(_elect(state, find_partition(state, name, number), request.election_type))
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


def balance_leaders(state: ControllerState, now_ms: int) -> Decision[bool]:
    """Elect preferred leaders that are in sync and do not lead. True: there may be more."""
    active = _active_brokers(state)

    def is_due(partition: PartitionState) -> bool:
        preferred = partition.replicas[0]
        return partition.leader != preferred and preferred in partition.isr and preferred in active

    return _elect_all(state, partitions_where(state, is_due), PREFERRED)


def elect_unclean_leaders(state: ControllerState, now_ms: int) -> Decision[bool]:
    """Elect leaders out of sync for partitions without one, where their topics allow it. True: there may be more."""
    active = _active_brokers(state)
    due = partitions_where(state, lambda partition: without_leader(partition) and not active.isdisjoint(partition.replicas))
    return _elect_all(state, (which for which in due if unclean_election_allowed(state, which.topic)), UNCLEAN)


def _active_brokers(state: ControllerState) -> set[int]:
    return {broker.id for broker in state.image.cluster.brokers.values() if broker.is_active}


def _elect_all(state: ControllerState, partitions: Iterable[PartitionOf], election_type: int) -> Decision[bool]:
    records: list[Message] = []
    for which in partitions:
        try:
            records.append(_elect(state, which, election_type))
        except KafkaError:
            continue  # such as a replica whose directory is offline
        if len(records) == ELECTIONS_AT_ONCE_MAX:
            return Decision(True, records)
    return Decision(False, records)


def _elect(state: ControllerState, which: PartitionOf, election_type: int) -> PartitionChangeRecord:
    partition, what = which.state, f"partition {which.topic.name}-{which.number}"
    if election_type == PREFERRED and partition.leader == partition.replicas[0]:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{what} is led by its preferred leader, broker {partition.leader}")
    if election_type == UNCLEAN and partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{what} has a leader, broker {partition.leader}")
    change = change_of(state, which)
    change.election = Election.PREFERRED if election_type == PREFERRED else Election.UNCLEAN
    record = change.build(which.topic.id, which.number)
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
