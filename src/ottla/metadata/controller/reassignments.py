"""Decides on AlterPartitionReassignments: starts, changes and cancels reassignments. Pure.

While a partition is being reassigned it has both the added and the removed replicas; `PartitionChange` drops the old ones when
the new ones are in sync. A request for the current replicas changes nothing, and succeeds: tools that move replicas to other
log directories begin with one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import PartitionOf, change_of, find_partition
from ottla.metadata.controller.new_partitions import RECORDS_PER_REQUEST_MAX, check_assignment
from ottla.metadata.controller.partition_change import Election
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.controller.topic_settings import unclean_election_allowed
from ottla.wire.base import Message
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.wire.messages.metadata_records import PartitionChangeRecord


def alter_reassignments(
    state: ControllerState, request: AlterPartitionReassignmentsRequest, now_ms: int
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Give partitions the requested replicas, or (None) cancel their reassignments."""
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    records: list[Message] = []
    counts = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    for topic in request.topics:
        results: list[ReassignablePartitionResponse] = []
        for wanted in topic.partitions:
            result = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
            try:
                if counts[topic.name, wanted.partition_index] > 1:
                    # Each is decided on the same state: the second record would mix with the first one's replicas.
                    what = f"partition {topic.name}-{wanted.partition_index}"
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} comes more than once in the request")
                record = _altered(state, topic.name, wanted, request.allow_replication_factor_change)
                records += [] if record is None else [record]
            except KafkaError as error:
                result.error_code, result.error_message = error.code, str(error)
            results.append(result)
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"at most {RECORDS_PER_REQUEST_MAX} partitions can be reassigned at once: ask for fewer at a time",
        )
    return Decision(response, records)


def _altered(
    state: ControllerState, topic_name: str, wanted: ReassignablePartition, may_change_factor: bool
) -> PartitionChangeRecord | None:
    which = find_partition(state, topic_name, wanted.partition_index)
    if wanted.replicas is None:
        return _cancelled(state, which)
    what = f"partition {topic_name}-{which.number}"
    check_assignment(state, what, wanted.replicas, None)
    if not may_change_factor and len(wanted.replicas) != len(which.state.final_replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{what} has {len(which.state.final_replicas)} replicas and would have {len(wanted.replicas)}, which the request "
            "itself does not allow",
        )
    return _changed(state, which, wanted.replicas)


def _changed(state: ControllerState, which: PartitionOf, target: Sequence[int]) -> PartitionChangeRecord | None:
    """Move to `target`. If the partition is being reassigned, `target` alone decides which of its replicas stay."""
    partition = which.state
    # Replicas of the replaced reassignment that have never been in sync are removed at once, as by a cancellation.
    worth_keeping = {*target, *partition.isr, *partition.elr, *partition.last_known_elr}
    not_added = set(partition.adding_replicas) - worth_keeping
    change = change_of(state, which)
    change.removing = sorted(set(partition.replicas) - not_added - set(target))
    # Replicas that were being added and are in the target have to get in sync still.
    change.adding = sorted(set(target) - (set(partition.replicas) - set(partition.adding_replicas)))
    change.replicas = [*target, *change.removing]
    return change.build(which.topic.id, which.number)


def _cancelled(state: ControllerState, which: PartitionOf) -> PartitionChangeRecord | None:
    """Return to the replicas from before. If none is in sync and unclean elections are allowed, the first counts as in sync."""
    partition, what = which.state, f"partition {which.topic.name}-{which.number}"
    if not partition.removing_replicas and not partition.adding_replicas:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{what} is not being reassigned")
    change = change_of(state, which)
    may_lose_records = unclean_election_allowed(state, which.topic)
    if may_lose_records:
        change.election = Election.UNCLEAN
    change.replicas = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    change.isr = [replica for replica in partition.isr if replica not in partition.adding_replicas]
    if not change.isr:
        if not may_lose_records or not change.replicas:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{what} cannot go back to the brokers {change.replicas}: none of them is in sync, and "
                "unclean.leader.election.enable is off",
            )
        change.isr = change.replicas[:1]
    change.removing, change.adding = [], []
    return change.build(which.topic.id, which.number)
