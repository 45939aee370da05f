"""DescribeGroups: classic groups and their members. Groups of other types have describe requests of their own.

v3: authorized operations. v4: group.instance.id of the members. v6: an unknown group gets GROUP_ID_NOT_FOUND and a message;
before, it has the state Dead and no error.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.handlers.groups.group_calls import code_of, describe_each
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.coordinator.groups.group import CLASSIC
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from ottla.coordinator.groups.shard import GroupShard

NOT_FOUND_SINCE = MESSAGES_SINCE = 6
DEAD = "Dead"
"""The state of a group that does not exist."""


def handle(context: RequestContext, request: DescribeGroupsRequest) -> Handled:
    return PendingTask(_describe_all(context, request))


def refuse(context: RequestContext, request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_refused(context, group_id, error) for group_id in request.groups])


def _refused(context: RequestContext, group_id: str, error: KafkaError, state: str = "") -> DescribedGroup:
    text = str(error) if context.version >= MESSAGES_SINCE else None
    return DescribedGroup(group_id=group_id, group_state=state, error_code=code_of(error), error_message=text)


async def _describe_all(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    describe = partial(_describe_one, context)
    return DescribeGroupsResponse(
        groups=await describe_each(context, request.groups, describe, request.include_authorized_operations)
    )


async def _describe_one(context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
        return await context.services.coordinators.groups.look(group_id, lambda shard, now: _describe(context, shard, group_id))
    except KafkaError as error:
        return _refused(context, group_id, error)


def _describe(context: RequestContext, shard: GroupShard, group_id: str) -> DescribedGroup:
    group = shard.table.by_id.get(group_id)
    if group is not None and group.type == CLASSIC:
        return shard.classic.describe(group_id)
    if context.version < NOT_FOUND_SINCE:
        return DescribedGroup(group_id=group_id, group_state=DEAD)
    reason = "there is no such group" if group is None else f"it is a {group.type} group, which another request describes"
    return _refused(context, group_id, KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id!r}: {reason}"), DEAD)
