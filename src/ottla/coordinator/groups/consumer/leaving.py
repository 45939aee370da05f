"""Removes members: they leave, their session expires, or they exceed their rebalance timeout.

When the last consumer-protocol member leaves and only classic ones remain, the group is downgraded to a classic group.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Answer, Effects, Instant, Reply
from ottla.coordinator.groups.classic.records import record_of
from ottla.coordinator.groups.consumer.context import ConsumerContext
from ottla.coordinator.groups.consumer.downgrading import as_classic, may_downgrade
from ottla.coordinator.groups.consumer.draft import GroupDraft
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.consumer.joining import check_instance
from ottla.coordinator.groups.consumer.member import LEAVE_STATIC_EPOCH, ConsumerMember
from ottla.coordinator.groups.consumer.records import current_record, epoch_record, no_regex, without_member
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

logger = logging.getLogger("ottla.coordinator")


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
