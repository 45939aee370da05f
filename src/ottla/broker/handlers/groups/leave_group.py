"""LeaveGroup: members leave a group.

v3: any number of members, each with its own result, and with group.instance.id; before, one member. v5: reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.handlers.groups.group_calls import caller_of, check_group_id, code_of
from ottla.broker.handlers.portions import PendingPortions, handle_in_portions
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.elements import has_many_elements
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

if TYPE_CHECKING:
    from ottla.coordinator.contract import Caller

MANY_MEMBERS_SINCE = 3


def handle(context: RequestContext, request: LeaveGroupRequest) -> Handled:
    check_group_id(request.group_id)
    if context.version < MANY_MEMBERS_SINCE:
        return PendingTask(_leave_alone(context, request, caller_of(context)))
    if has_many_elements(request):
        return PendingPortions(handle_in_portions(context, request, _leave, refuse, "members"))
    return _leave(context, request)


def _leave(context: RequestContext, request: LeaveGroupRequest) -> Handled:
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.leave(request, caller, reply, now)
    )


async def _leave_alone(context: RequestContext, request: LeaveGroupRequest, caller: Caller) -> LeaveGroupResponse:
    """Remove the one member of an old request; its error code is the response's."""
    alone = LeaveGroupRequest(group_id=request.group_id, members=[MemberIdentity(member_id=request.member_id)])
    response: LeaveGroupResponse = await context.services.coordinators.groups.call(
        request.group_id, lambda shard, reply, now: shard.leave(alone, caller, reply, now)
    )
    return LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)


def refuse(context: RequestContext, request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    if error.code != ErrorCode.UNKNOWN_MEMBER_ID or context.version < MANY_MEMBERS_SINCE:
        return LeaveGroupResponse(error_code=code_of(error))
    return LeaveGroupResponse(  # there is no such group: each member gets the error
        members=[
            MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error.code)
            for each in request.members
        ]
    )
