"""LeaveGroup: whether a member sends it, and in which form.

Version notes: v3: several members and their group.instance.id in one request; v5: a reason.
"""

from __future__ import annotations

from typing import Final

from ottla.client_core.group.identity import Identity
from ottla.client_core.group.membership import LeaveOption
from ottla.client_core.machine import Channel, Request
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

_MANY_SINCE_VERSION: Final = 3
_REASON_LENGTH_MAX: Final = 255


def sends_leave(option: LeaveOption, group_instance_id: str | None) -> bool:
    """Whether the member tells its coordinator that it leaves. A static one stays by default, to come back soon (KIP-1092)."""
    if option is LeaveOption.DEFAULT:
        return group_instance_id is None
    return option is LeaveOption.LEAVE_GROUP


def leave_request(identity: Identity, node: int, reason: str) -> Request:
    """The request. It goes with the heartbeats, because a JoinGroup may be parked on the group's other connection."""
    group_id, member_id, instance_id = identity.group_id, identity.member_id, identity.group_instance_id

    def adapt(version: int) -> LeaveGroupRequest:
        if version < _MANY_SINCE_VERSION:
            return LeaveGroupRequest(group_id=group_id, member_id=member_id)
        member = MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason[:_REASON_LENGTH_MAX])
        return LeaveGroupRequest(group_id=group_id, members=[member])

    return Request(LeaveGroupRequest(), node, channel=Channel.HEARTBEAT, adapt=adapt)
