"""Who is a member: finds the member of a request, and removes members that leave, expire or exceed their rebalance timeout.

When the last consumer-protocol member leaves and only classic ones remain, the group is downgraded to a classic group.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Answer, Effects, Instant, Reply
from ottla.coordinator.groups.classic.records import record_of
from ottla.coordinator.groups.consumer.context import ConsumerContext, Sessions
from ottla.coordinator.groups.consumer.group import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    current_record,
    epoch_record,
    member_record,
    no_regex,
    target_record,
    without_member,
)
from ottla.coordinator.groups.consumer.migration import as_classic, may_downgrade
from ottla.coordinator.groups.consumer.reconciliation import Owned
from ottla.coordinator.groups.consumer.replay import GroupDraft
from ottla.coordinator.groups.group import check_instance_owner
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

logger = logging.getLogger("ottla.coordinator")


# The member of a request: a known one, a new one, or one that replaces a static member. Pure checks, and the records of a
# replacement.


def check_epoch(group: ConsumerGroup, member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Raises FENCED_MEMBER_EPOCH unless the member is in `epoch`, or was before and owns only partitions assigned to it."""
    if epoch in (member.epoch, JOIN_EPOCH):
        return
    if epoch == member.previous_epoch and epoch < member.epoch and _is_part(owned, member):
        return  # the response with its new epoch may have been lost
    logger.info(
        "group %s: member %s is fenced: it says that it is in epoch %d, and it is in %d",
        group.group_id,
        member,
        epoch,
        member.epoch,
    )
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member} of group {group.group_id} is in epoch {member.epoch}, not in {epoch}: "
        "let go of all partitions, and join again",
    )


def _is_part(owned: Owned | None, member: ConsumerMember) -> bool:
    if owned is None:
        return False
    return all(index in member.assigned.get(topic_id, ()) for topic_id, indexes in owned.items() for index in indexes)


def check_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The static member; `KafkaError` if another member has the instance id."""
    check_instance_owner(group.group_id, instance_id, member_id, group.static_ids.get(instance_id))
    return group.members[member_id]


def member_in(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member by its ids. `KafkaError` if it is unknown, or another member has its instance id."""
    return group.member(member_id) if instance_id is None else check_instance(group, member_id, instance_id)


def replace_static(draft: GroupDraft, sessions: Sessions, member_id: str, instance_id: str, is_classic: bool) -> ConsumerMember:
    """The static member under its new member id, or a new member with this instance id.

    A consumer-protocol member may replace another only if that has left temporarily; one that has not left keeps its place.
    """
    group = draft.group
    before = group.static_member(instance_id)
    if before is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not is_classic and not before.is_classic and not before.has_left_for_now:
        logger.info(
            "group %s: member %s is turned away, because %s has the instance id (group.instance.id) %s",
            group.group_id,
            member_id,
            before.member_id,
            instance_id,
        )
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"member {before.member_id} of group {group.group_id} has the instance id {instance_id}, and has not left: "
            "no two may use one group.instance.id at a time",
        )
    member = before._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    group_id, target = group.group_id, group.target_of(before.member_id)
    draft.write(
        [
            *without_member(group_id, before.member_id),
            member_record(group_id, member),
            target_record(group_id, member_id, target),
            current_record(group_id, member),
        ]
    )
    if before.member_id != member_id:
        draft.when_decided(lambda: sessions.forget(group_id, before.member_id))
    logger.info("group %s: member %s takes the place of %s", group_id, member, before.member_id)
    return member


def leave(context: ConsumerContext, request: ConsumerGroupHeartbeatRequest, reply: Reply, now: Instant) -> Effects:
    """A heartbeat with a leave epoch: the member leaves, or (a static one) leaves temporarily."""
    group = context.find(request.group_id)
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = check_instance(group, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        logger.info("group %s: static member %s left for now", group.group_id, member)
        gone = member._replace(
            epoch=LEAVE_STATIC_EPOCH,
            assigned={topic_id: dict.fromkeys(held, 0) for topic_id, held in member.assigned.items()},
            revoking={},
        )
        return Effects.answer(reply, response, [current_record(group.group_id, gone)])
    logger.info("group %s: member %s left", group.group_id, member)
    effects = remove(context, group, [member], now)
    effects.answers.append(Answer(reply, response))
    return effects


def evict(context: ConsumerContext, group_id: str, member_id: str, why: str, now: Instant) -> Effects:
    """Remove a member that missed a deadline."""
    group = context.table.by_id.get(group_id)
    if not isinstance(group, ConsumerGroup) or member_id not in group.members:
        return Effects()
    member = group.members[member_id]
    logger.info("group %s: member %s is removed: %s", group_id, member, why)
    return remove(context, group, [member], now)


def remove(context: ConsumerContext, group: ConsumerGroup, members: Sequence[ConsumerMember], now: Instant) -> Effects:
    """Remove these members: the group begins a new epoch, or is downgraded to a classic group."""
    if not members:
        return Effects()
    group_id = group.group_id
    if may_downgrade(group, members, context.table.settings):
        gone = {member.member_id for member in members}
        left = [member for member_id, member in group.members.items() if member_id not in gone]
        reason = f"{', '.join(map(str, members))} left, and only classic members are left"
        return downgrade(context, group, group, left, reason, now)
    draft = GroupDraft(group)
    for member in members:
        draft.write(without_member(group_id, member.member_id))
        regex = member.regex
        if regex and regex not in draft.group.regex_counts and regex in draft.group.resolved:
            draft.write([no_regex(group_id, regex)])
    draft.write([epoch_record(group_id, draft.group.epoch + 1, context.watch.hash_of(draft.group))])
    for member in members:
        context.sessions.forget(group_id, member.member_id)
    if not draft.group.members:
        context.table.emptied_ms[group_id] = now.wall_ms
    return draft.finish()


def downgrade(
    context: ConsumerContext,
    before: ConsumerGroup,
    after: ConsumerGroup,
    left: Sequence[ConsumerMember],
    rebalance_reason: str | None,
    now: Instant,
) -> Effects:
    """Replace the group by a classic one with the members `left`; `before` and `after` are the group around the decision."""
    classic = as_classic(after, left, before.epoch, rebalance_reason is not None, context.table.topics, now)
    record = record_of(classic, must_rebalance=rebalance_reason is not None)
    effects = Effects([*before.tombstones(), record], is_bound=True)
    context.watch.forget(before.group_id)
    for member_id in before.members:
        context.sessions.forget(before.group_id, member_id)
    # Put into the table now, not by replay: the record does not hold everything, and the rebalance begins now.
    effects.add(context.classic.take_over(classic, now, rebalance_reason))
    return effects
