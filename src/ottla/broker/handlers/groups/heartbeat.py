"""Heartbeat: keeps a member of a classic group alive, and says whether it has to rejoin.

v3: group.instance.id of static members.
"""

from __future__ import annotations

from ottla.broker.handlers.groups.group_calls import caller_of, check_group_id, code_of
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(context: RequestContext, request: HeartbeatRequest) -> Handled:
    check_group_id(request.group_id)
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.heartbeat(request, caller, reply, now), may_write=False
    )


def refuse(context: RequestContext, request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    # As in Kafka, a heartbeat succeeds while the group is loading: the member's session begins when loading is done.
    is_loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else code_of(error))
