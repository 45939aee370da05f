"""Classic-protocol members of a consumer group: decides on their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

JoinGroup is answered at once, with the member's epoch as the generation; SyncGroup returns its partitions. Heartbeats answer
REBALANCE_IN_PROGRESS when the member has to join again: for a newer target, to report revoked partitions, or to get partitions
that were not free before. No request is parked, and no member is the leader: the coordinator assigns.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Answer, Caller, Effects, Instant, Reply
from ottla.coordinator.groups.classic.answers import not_joined
from ottla.coordinator.groups.consumer.context import ConsumerContext
from ottla.coordinator.groups.consumer.group import (
    PROTOCOL_TYPE,
    ClassicProtocol,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Partitions,
    sorted_topics,
)
from ottla.coordinator.groups.consumer.heartbeat import subscribe, told_next
from ottla.coordinator.groups.consumer.membership import check_instance, downgrade, member_in, remove, replace_static
from ottla.coordinator.groups.consumer.migration import assignment_version, by_id, may_downgrade, write_assignment
from ottla.coordinator.groups.consumer.reconciliation import goal_of, reconcile
from ottla.coordinator.groups.consumer.replay import GroupDraft
from ottla.coordinator.groups.consumer.targets import assign
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import uuid_text
from ottla.wire.consumer_protocol import read_subscription
from ottla.wire.messages.heartbeat import HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from ottla.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
    from ottla.wire.messages.sync_group import SyncGroupRequest

logger = logging.getLogger("ottla.coordinator")

_ID_HANDSHAKE_SINCE = 4


def join(context: ConsumerContext, request: JoinGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
    """A classic member joins, or joins again. Not parked: the answer goes out at once."""
    group = context.find(request.group_id)
    if not group.members:
        # An empty consumer group counts as unknown: its tombstones go before the records of the new classic group.
        effects = context.classic.join(request, caller, reply, now)
        effects.records[:0] = group.tombstones()
        context.watch.forget(group.group_id)
        return effects
    try:
        return _join(context, group, request, caller, reply, now)
    except KafkaError as refused:
        logger.info("group %s: a classic member is turned away: %s", group.group_id, refused)
        # Unlike in classic groups, the response to a refused member has no member id.
        return Effects.answer(reply, not_joined(refused.code, "", caller.version))


def _join(
    context: ConsumerContext, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, reply: Reply, now: Instant
) -> Effects:
    member_id, instance_id = request.member_id or uuid_text(context.table.new_uuid()), request.group_instance_id
    context.check_size(group, request.member_id)
    _check_protocols(group, member_id, request)
    if not request.member_id and instance_id is None and caller.version >= _ID_HANDSHAKE_SINCE:
        return Effects.answer(reply, not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id, caller.version))
    subscription = _subscription(member_id, request)
    draft = GroupDraft(group)
    if instance_id is None:
        before = group.members.get(member_id) or ConsumerMember(member_id)
    elif request.member_id:
        before = check_instance(group, member_id, instance_id)
    else:
        before = replace_static(draft, context.sessions, member_id, instance_id, is_classic=True)
    member = _as_told(before, request, subscription, caller)
    context.check_memory(draft.group, before, member, now)
    has_resubscribed = subscribe(draft, before, member)
    has_changed = context.watch.resolve(draft, caller, now) or has_resubscribed
    context.watch.compare(draft, has_changed)
    replaced = group.static_member(instance_id)
    if replaced is not None and not replaced.is_classic and may_downgrade(draft.group, (), context.table.settings):
        return _go_back(context, group, draft, member, subscription, reply, now)
    assign(draft, context.table.settings, context.table.topics, now)
    after = told_next(context, draft, member, _owned(context, subscription), has_resubscribed, now)

    def listen() -> None:
        context.sessions.heard(group.group_id, after, now)
        context.sessions.joined(group.group_id, after, now)

    draft.when_decided(listen)
    effects = draft.finish()
    effects.answers.append(Answer(reply, _joined(after)))
    return effects


def _check_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    counts, size = group.protocol_counts, group.classic_count
    if request.protocol_type != PROTOCOL_TYPE or not any(counts.get(each.name, 0) == size for each in request.protocols):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"member {member_id} with the protocol type {request.protocol_type!r} and the protocols "
            f"{[each.name for each in request.protocols]} has none in common with all other classic members of group "
            f"{group.group_id}: give them the same partition.assignment.strategy",
        )


def _subscription(member_id: str, request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(bytes(request.protocols[0].metadata))
    except DecodeError as fault:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"the subscription of member {member_id} of group {request.group_id} cannot be read: {fault}",
        ) from fault


def _owned(context: ConsumerContext, subscription: ConsumerProtocolSubscription) -> Partitions:
    return by_id(context.table.topics, {each.topic: each.partitions for each in subscription.owned_partitions})


def _as_told(
    member: ConsumerMember, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription, caller: Caller
) -> ConsumerMember:
    return member._replace(
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        topics=sorted_topics(subscription.topics),
        regex="",
        client_id=caller.client_id,
        client_host=caller.host,
        classic=ClassicSide(
            request.session_timeout_ms,
            tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in request.protocols),
        ),
    )


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None, f"{member} does not speak the classic protocol"
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0].name,
    )


def _go_back(
    context: ConsumerContext,
    group: ConsumerGroup,
    draft: GroupDraft,
    member: ConsumerMember,
    subscription: ConsumerProtocolSubscription,
    reply: Reply,
    now: Instant,
) -> Effects:
    """The last consumer-protocol member, a static one, has rejoined with the classic protocol: downgrade the group.

    Without a rebalance only if every member holds its target. Classic members that keep their generation never ask for the rest
    of it, and the rest may still be held by another member. Apache Kafka looks only at the target's epoch.

    A dynamic member that does so under its old id does not downgrade the group, as in Apache Kafka.
    """
    after, reason = draft.group, None
    if after.target_epoch < after.epoch:
        reason = f"{member} came back with the classic protocol, and there is no target yet"
    else:
        goal = goal_of(after, member, context.table.topics)
        member = reconcile(after, member, goal, _owned(context, subscription), False)
        members = {**after.members, member.member_id: member}
        if not all(each.is_reconciled_to(after.target_epoch) for each in members.values()):
            reason = f"{member} came back with the classic protocol, and not all members have their partitions"
    draft.finish()
    effects = downgrade(context, group, after, list(after.members.values()), reason, now)
    effects.answers.append(Answer(reply, _joined(member)))
    return effects


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    """The member by its ids; `KafkaError` unless it uses the classic protocol and is in this generation."""
    member = member_in(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"member {member} of group {group.group_id} does not speak the classic protocol"
        )
    if generation != member.epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"member {member} of group {group.group_id} is in epoch {member.epoch}, not {generation}: join it again",
        )
    return member


def sync(context: ConsumerContext, request: SyncGroupRequest, reply: Reply, now: Instant) -> Effects:
    group = context.find(request.group_id)
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    first = member.classic.protocols[0]
    for asked, chosen in ((request.protocol_type, PROTOCOL_TYPE), (request.protocol_name, first.name)):
        if asked is not None and asked != chosen:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"member {member} of group {group.group_id} joined with {chosen!r}, not {asked!r}: join again",
            )
    if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        context.sessions.must_join(group.group_id, member, now)
        raise KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id} has a new target for member {member}: join again"
        )
    context.sessions.synced(group.group_id, member)
    context.sessions.heard(group.group_id, member, now)
    assignment = write_assignment(member.assigned, context.table.topics, assignment_version(first.metadata))
    response = SyncGroupResponse(
        protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
    )
    return Effects.answer(reply, response)


def heartbeat(context: ConsumerContext, request: HeartbeatRequest, reply: Reply, now: Instant) -> Effects:
    group = context.find(request.group_id)
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    context.sessions.heard(group.group_id, member, now)
    error = ErrorCode.NONE
    if (
        member.epoch < group.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
    ):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        context.sessions.must_join(group.group_id, member, now)
    return Effects.answer(reply, HeartbeatResponse(error_code=error))


def leave(context: ConsumerContext, request: LeaveGroupRequest, reply: Reply, now: Instant) -> Effects:
    group = context.find(request.group_id)
    leaving: dict[str, ConsumerMember] = {}
    results = []
    for leaver in request.members:
        result = MemberResponse(member_id=leaver.member_id, group_instance_id=leaver.group_instance_id)
        results.append(result)
        try:
            member = _leaver(group, leaver)
        except KafkaError as refused:
            result.error_code = refused.code
            continue
        leaving[member.member_id] = member
        logger.info("group %s: member %s left (its reason: %s)", group.group_id, member, leaver.reason or "not given")
    effects = remove(context, group, list(leaving.values()), now)
    effects.answers.append(Answer(reply, LeaveGroupResponse(members=results)))
    return effects


def _leaver(group: ConsumerGroup, leaver: MemberIdentity) -> ConsumerMember:
    if leaver.group_instance_id is not None and not leaver.member_id:
        known = group.static_ids.get(leaver.group_instance_id, "")  # an operator removes it by the instance id alone
        return member_in(group, known, leaver.group_instance_id)
    return member_in(group, leaver.member_id, leaver.group_instance_id)
