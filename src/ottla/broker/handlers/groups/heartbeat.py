"""Heartbeat: a member of a classic group shows that it lives, and learns whether it has to rejoin."""

from __future__ import annotations

from ottla.broker.handlers.groups.group_calls import caller_of, check_group_id, code_of
from ottla.broker.request import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(context: RequestContext, request: HeartbeatRequest) -> Handled:
    check_group_id(request.group_id)
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.heartbeat(request, caller, reply, now)
    )


def refuse(context: RequestContext, request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    # While the group is loaded nothing is known against the member, and its session begins when that is done.
    is_loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else code_of(error))
