"""DeleteGroups: deletes groups without members, with their committed offsets.

All versions (0 to 2) have the same fields.
"""

from __future__ import annotations

from ottla.broker.handlers.groups.group_calls import code_of
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(context: RequestContext, request: DeleteGroupsRequest) -> Handled:
    return PendingTask(_delete_all(context, request))


def refuse(context: RequestContext, request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    code = code_of(error)
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=code) for group_id in request.groups_names]
    )


async def _delete_all(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    response, pauses = DeleteGroupsResponse(), Pauses(context)
    for group_id in dict.fromkeys(request.groups_names):
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=await _delete(context, group_id)))
        await pauses.here()
    return response


async def _delete(context: RequestContext, group_id: str) -> int:
    try:
        context.require(Operation.DELETE, ResourceType.GROUP, group_id)
        await context.services.coordinators.groups.call(
            group_id, lambda shard, reply, now: shard.offsets.delete_group(group_id, reply)
        )
    except KafkaError as error:
        return code_of(error)
    return ErrorCode.NONE
