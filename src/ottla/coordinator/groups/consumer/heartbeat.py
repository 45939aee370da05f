"""Decides on ConsumerGroupHeartbeat: a member joins or reports its subscription and partitions, and gets its assignment.

    find the member → update its subscription → compute a new target → reconcile the member
                      (the group's epoch)       (the target's epoch)   (the member's epoch)

Most heartbeats change nothing and write nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Answer, Caller, Effects, Instant, Reply
from ottla.coordinator.groups.consumer.context import ConsumerContext
from ottla.coordinator.groups.consumer.expressions import compiled
from ottla.coordinator.groups.consumer.group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    current_record,
    member_record,
    no_regex,
    sorted_topics,
)
from ottla.coordinator.groups.consumer.membership import check_epoch, check_instance, replace_static
from ottla.coordinator.groups.consumer.reconciliation import Owned, goal_of, reconcile
from ottla.coordinator.groups.consumer.replay import GroupDraft
from ottla.coordinator.groups.consumer.targets import assign, served_assignors
from ottla.coordinator.groups.settings import GroupSettings, heartbeat_interval_ms
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, uuid_text
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

logger = logging.getLogger("ottla.coordinator")


def heartbeat(
    context: ConsumerContext, request: ConsumerGroupHeartbeatRequest, caller: Caller, reply: Reply, now: Instant
) -> Effects:
    """A heartbeat of a member that joins or stays. `check_heartbeat` has validated the request's fields before."""
    is_joining = request.member_epoch == JOIN_EPOCH
    draft = context.open(request.group_id, is_joining, now)
    context.check_size(draft.group, request.member_id)
    owned = _owned(request)
    before = _member(context, draft, request, owned)
    member = _as_told(before, request, caller)
    if member != before:
        context.check_memory(draft.group, before, member, now)
    has_resubscribed = subscribe(draft, before, member)
    has_changed = context.watch.resolve(draft, caller, now) or has_resubscribed
    context.watch.compare(draft, has_changed)
    settings = context.table.settings
    assign(draft, settings, context.table.topics, now)
    after = told_next(context, draft, member, owned, has_resubscribed, now)
    group_id = request.group_id
    draft.when_decided(lambda: context.sessions.heard(group_id, after, now))
    response = ConsumerGroupHeartbeatResponse(
        member_id=after.member_id, member_epoch=after.epoch, heartbeat_interval_ms=heartbeat_interval_ms(settings, group_id)
    )
    if is_joining or _is_full(request) or after.assigned != before.assigned:
        response.assignment = _assignment(after)
    effects = draft.finish()
    effects.answers.append(Answer(reply, response))
    return effects


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    owned: dict[Uuid, list[int]] = {}
    for each in request.topic_partitions:  # a topic may be listed twice: merge its partitions
        owned.setdefault(each.topic_id, []).extend(each.partitions)
    return owned


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request has all fields, as when the member does not know whether its last request was received."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None


def _member(
    context: ConsumerContext, draft: GroupDraft, request: ConsumerGroupHeartbeatRequest, owned: Owned | None
) -> ConsumerMember:
    """The member before this heartbeat; a new one gets an id if it has none."""
    group, instance_id, epoch = draft.group, request.instance_id, request.member_epoch
    member_id = request.member_id or uuid_text(context.table.new_uuid())
    if instance_id is None:
        member = group.members.get(member_id) or (ConsumerMember(member_id) if epoch == JOIN_EPOCH else group.member(member_id))
        check_epoch(group, member, epoch, owned)
    elif epoch == JOIN_EPOCH:
        member = replace_static(draft, context.sessions, member_id, instance_id, is_classic=False)
    else:
        member = check_instance(group, member_id, instance_id)
        check_epoch(group, member, epoch, owned)
    if epoch == JOIN_EPOCH:
        logger.info("group %s: member %s joins with the consumer protocol", group.group_id, member)
    return member


def _as_told(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> ConsumerMember:
    """The member with the fields of this request. Fields that the request leaves out stay as they were."""
    told = request.subscribed_topic_names
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if told is None else sorted_topics(told),
        regex=member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        client_id=caller.client_id,
        client_host=caller.host,
        classic=None,
    )


def subscribe(draft: GroupDraft, before: ConsumerMember, member: ConsumerMember) -> bool:
    """Write the member's record if it has changed. Returns whether its subscription has changed."""
    if member == before:
        return False
    group_id, old, new = draft.group.group_id, before.regex or "", member.regex or ""
    if new and new != old and new not in draft.group.resolved:
        compiled(new)  # raises KafkaError if it is invalid
    draft.write([member_record(group_id, member)])
    if old and old not in draft.group.regex_counts and old in draft.group.resolved:
        draft.write([no_regex(group_id, old)])
    return member.topics != before.topics or new != old


def told_next(
    context: ConsumerContext,
    draft: GroupDraft,
    member: ConsumerMember,
    owned: Owned | None,
    has_resubscribed: bool,
    now: Instant,
) -> ConsumerMember:
    """Move the member towards its target: the last step of a decision."""
    group_id = draft.group.group_id
    if not has_resubscribed and member.is_reconciled_to(draft.group.target_epoch):
        return member
    goal = goal_of(draft.group, member, context.table.topics)
    after = reconcile(draft.group, member, goal, owned, has_resubscribed)
    if after != member:
        draft.write_last(current_record(group_id, after))
        if not after.is_classic:
            draft.when_decided(lambda: context.sessions.told(group_id, after, now))
    return after


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in member.assigned.items()
        ]
    )


# Validates the fields of a ConsumerGroupHeartbeat, without looking at its group.

MEMBER_ID_SINCE = 1
"""From this version on members generate their own ids."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, settings: GroupSettings) -> None:
    """Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR if the request is malformed."""
    epoch = request.member_epoch
    if version >= MEMBER_ID_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_filled("MemberId", request.member_id)
    _check_filled("GroupId", request.group_id)
    _check_filled("InstanceId", request.instance_id)
    _check_filled("RackId", request.rack_id)
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be given by a member that joins")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty, and not null, when a member joins: it holds none yet")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("SubscribedTopicNames or SubscribedTopicRegex must be given by a member that joins")
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise _invalid(f"InstanceId must be given with the epoch {LEAVE_STATIC_EPOCH}, by which static members leave for now")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise _invalid(f"there is no MemberEpoch {epoch}: it is {LEAVE_STATIC_EPOCH} or more")
    assignor, served = request.server_assignor, served_assignors(settings)
    if assignor is not None and assignor not in served:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {assignor!r} here (group.consumer.assignors): use one of {', '.join(served)}",
        )


def _check_filled(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} must not be empty")


def _invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, what)
