"""What members are told: responses to JoinGroup and SyncGroup, and the refusals that more than one place gives."""

from __future__ import annotations

from ottla.coordinator.contract import Answer, Reply
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.classic.member import ClassicMember
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

NULLABLE_PROTOCOL_SINCE = 7
"""From this version of JoinGroup on no protocol is null, and before it the empty text."""


def joined(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """The member is in the group's generation; the leader is told of all others, so that it can assign."""
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
    """To a parked request of a member that is no longer one."""
    return Answer(
        reply,
        KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"the member was removed from group {group.group_id} while it waited: join again"
        ),
    )


def superseded(reply: Reply, group: ClassicGroup) -> Answer:
    """To a parked request whose member asked again: only its last request is waited for."""
    return Answer(
        reply,
        KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS, f"the member asked again, and group {group.group_id} goes by its last request"
        ),
    )


def rejoin(reply: Reply, group: ClassicGroup) -> Answer:
    """To a parked SyncGroup whose generation has ended before it had an assignment."""
    return Answer(reply, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id} rebalances again: join again"))


def fenced(reply: Reply, group: ClassicGroup, instance_id: str | None) -> Answer:
    """To a parked request of a static member whose place another has taken."""
    return Answer(
        reply,
        KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"another process has joined group {group.group_id} with the instance id {instance_id}: no two may use one "
            "group.instance.id at a time",
        ),
    )
