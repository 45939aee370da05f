"""SyncGroup: the leader of a classic group sends the assignment; the requests of the other members are parked until then.

v3: group.instance.id of static members. v5: protocol type and protocol, in request and response.
"""

from __future__ import annotations

from ottla.broker.handlers.groups.group_calls import caller_of, check_group_id, code_of
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_SINCE = 5


def handle(context: RequestContext, request: SyncGroupRequest) -> Handled:
    if context.version >= PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"a member of group {request.group_id} does not send the protocol type and protocol of its JoinGroup response: "
            f"both are needed since version {PROTOCOL_SINCE} of SyncGroup",
        )
    check_group_id(request.group_id)
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.sync(request, caller, reply, now)
    )


def refuse(context: RequestContext, request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code_of(error))
