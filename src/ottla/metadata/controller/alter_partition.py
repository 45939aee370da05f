"""Decides on AlterPartition: a leader's proposal of a new ISR or of the end of its recovery. Pure.

Each partition is decided on its own, and only against its newest state: a proposal from an older leader or partition epoch is
refused, so that a leader never overwrites a change that it has not seen. A new ISR that completes a reassignment also removes
the old replicas, and may elect another leader: the sender then gets NEW_LEADER_ELECTED although the change is made.
"""

from __future__ import annotations

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.brokers import check_broker_epoch
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import PartitionOf, change_of
from ottla.metadata.controller.partition_change import RECOVERED, RECOVERING, Election
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.controller.topic_settings import effective_min_isr, unclean_election_allowed
from ottla.metadata.image.topics import PartitionState, Topic
from ottla.metadata.image.topics_delta import merge
from ottla.wire.base import Message
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)

_ANY_EPOCH = -1
"""A broker epoch that is not checked: version 2 has none."""


def alter_partition(state: ControllerState, request: AlterPartitionRequest, now_ms: int) -> Decision[AlterPartitionResponse]:
    """Change the ISR and the recovery state of partitions as their leader, the sender, proposes."""
    check_broker_epoch(state, request.broker_id, request.broker_epoch)
    response = AlterPartitionResponse()
    records: list[Message] = []
    changed: dict[
        tuple[Uuid, int], PartitionState
    ] = {}  # a partition that comes twice is decided on what its first change made
    for wanted in request.topics:
        topic = state.image.topics.by_id.get(wanted.topic_id)
        if topic is None:
            results = [_refused(each, ErrorCode.UNKNOWN_TOPIC_ID) for each in wanted.partitions]
        else:
            results = _alter_topic(state, request.broker_id, topic, wanted, changed, records)
        response.topics.append(AlterPartitionResponseTopicData(topic_id=wanted.topic_id, partitions=results))
    return Decision(response, records)


def _alter_topic(
    state: ControllerState,
    broker_id: int,
    topic: Topic,
    wanted: AlterPartitionRequestTopicData,
    changed: dict[tuple[Uuid, int], PartitionState],
    records: list[Message],
) -> list[AlterPartitionResponsePartitionData]:
    min_isr = effective_min_isr(state, topic)
    election = Election.UNCLEAN if unclean_election_allowed(state, topic) else Election.ONLINE
    results = []
    for proposal in wanted.partitions:
        number = proposal.partition_index
        partition = changed.get((topic.id, number)) or topic.partitions.get(number)
        if partition is None:
            results.append(_refused(proposal, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        code = _fault(state, broker_id, partition, proposal)
        if code != ErrorCode.NONE:
            results.append(_refused(proposal, code))
            continue
        change = change_of(state, PartitionOf(topic, number, partition), min_isr=min_isr)
        change.election = election
        change.isr = [replica for replica, _ in _proposed_isr(proposal)]
        change.recovery_state = proposal.leader_recovery_state
        record = change.build(topic.id, number)
        if record is not None:
            records.append(record)
            partition = changed[topic.id, number] = merge(partition, record)
        if partition.leader == broker_id:
            results.append(_accepted(number, partition))
        else:  # the change completed a reassignment, and the sender is none of the new replicas
            results.append(_refused(proposal, ErrorCode.NEW_LEADER_ELECTED))
    return results


def _fault(
    state: ControllerState, broker_id: int, partition: PartitionState, proposal: AlterPartitionRequestPartitionData
) -> ErrorCode:
    """Why the proposal is refused, or NONE."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader has seen newer metadata than this controller, which cannot be active
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = [replica for replica, _ in _proposed_isr(proposal)]
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas) or broker_id not in isr:
        return ErrorCode.INVALID_REQUEST
    if proposal.leader_recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    # No replica is in sync with a leader that has not recovered, and a recovery begins with an election only.
    if proposal.leader_recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not all(_may_be_in_sync(state, replica, epoch) for replica, epoch in _proposed_isr(proposal)):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _proposed_isr(proposal: AlterPartitionRequestPartitionData) -> list[tuple[int, int]]:
    """The replicas of the proposed ISR with the broker epochs in which they caught up."""
    if proposal.new_isr_with_epochs:
        return [(each.broker_id, each.broker_epoch) for each in proposal.new_isr_with_epochs]
    return [(replica, _ANY_EPOCH) for replica in proposal.new_isr]


def _may_be_in_sync(state: ControllerState, broker_id: int, epoch: int) -> bool:
    """Whether the broker is active, and since it caught up has not restarted: it could have lost records in that."""
    broker = state.image.cluster.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (_ANY_EPOCH, broker.epoch)


def _accepted(number: int, partition: PartitionState) -> AlterPartitionResponsePartitionData:
    return AlterPartitionResponsePartitionData(
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _refused(proposal: AlterPartitionRequestPartitionData, code: ErrorCode) -> AlterPartitionResponsePartitionData:
    return AlterPartitionResponsePartitionData(partition_index=proposal.partition_index, error_code=code)
