"""Builds responses to JoinGroup and SyncGroup, and the errors for parked requests."""

from __future__ import annotations

from ottla.coordinator.contract import Answer, Reply
from ottla.coordinator.groups.classic.group import ClassicGroup, ClassicMember
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

NULLABLE_PROTOCOL_SINCE = 7
"""From this version of JoinGroup on a missing protocol name is null, before it the empty text."""


class NotAnswered(KafkaError):
    """The error for a parked request. JoinGroup's response has the member id in it, which the member may not know yet."""

    def __init__(self, code: int, message: str, member_id: str) -> None:
        super().__init__(code, message)
        self.member_id = member_id


def joined(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """The member is in the group's generation. The leader gets the list of all members, so that it can assign."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=joined_members(group) if group.is_leader(member.member_id) else [],
    )


def joined_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=each.member_id, group_instance_id=each.instance_id, metadata=each.metadata(group.protocol_name)
        )
        for each in group.members.values()
    ]


def not_joined(code: int, member_id: str, version: int) -> JoinGroupResponse:
    """JoinGroup failed with `code`."""
    return JoinGroupResponse(
        error_code=code, member_id=member_id, protocol_name=None if version >= NULLABLE_PROTOCOL_SINCE else ""
    )


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment)


def removed(reply: Reply, group: ClassicGroup) -> Answer:
    """For a parked request of a removed member. Its id is left out, so that it joins as a new member."""
    text = f"the member was removed from group {group.group_id} while it waited: join again"
    return Answer(reply, NotAnswered(ErrorCode.UNKNOWN_MEMBER_ID, text, ""))


def superseded(reply: Reply, group: ClassicGroup, member: ClassicMember) -> Answer:
    """For a parked request whose member sent another one: only the last stays parked."""
    text = f"the member sent another request, and group {group.group_id} answers only the last"
    return Answer(reply, NotAnswered(ErrorCode.REBALANCE_IN_PROGRESS, text, member.member_id))


def rejoin(reply: Reply, group: ClassicGroup, member: ClassicMember) -> Answer:
    """For a parked request whose generation has ended before it could be answered."""
    text = f"group {group.group_id} rebalances again: join again"
    return Answer(reply, NotAnswered(ErrorCode.REBALANCE_IN_PROGRESS, text, member.member_id))


def fenced(reply: Reply, group: ClassicGroup, member: ClassicMember) -> Answer:
    """For a parked request of a static member that another process replaces."""
    text = (
        f"another process has joined group {group.group_id} with the instance id {member.instance_id}: no two may use one "
        "group.instance.id at a time"
    )
    return Answer(reply, NotAnswered(ErrorCode.FENCED_INSTANCE_ID, text, member.member_id))


def lost(reply: Reply, member: ClassicMember, failure: KafkaError) -> Answer:
    """For a parked request when the runtime drops the shard."""
    return Answer(reply, NotAnswered(failure.code, str(failure), member.member_id))
