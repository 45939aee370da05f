"""Finds the member of a request: a known one, a new one, or one that replaces a static member.

Pure checks, and the records of a replacement.
"""

from __future__ import annotations

import logging

from ottla.coordinator.groups.consumer.draft import GroupDraft
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.consumer.member import JOIN_EPOCH, ConsumerMember
from ottla.coordinator.groups.consumer.reconciling import Owned
from ottla.coordinator.groups.consumer.records import current_record, member_record, target_record, without_member
from ottla.coordinator.groups.consumer.sessions import Sessions
from ottla.coordinator.groups.refusals import check_instance_owner
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

logger = logging.getLogger("ottla.coordinator")


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
