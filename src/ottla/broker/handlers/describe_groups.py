"""DescribeGroups: classic groups and their members. Groups of other kinds are described by requests of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.handlers.cluster_view import GROUP_OPERATIONS
from ottla.broker.handlers.group_calls import code_of
from ottla.broker.request import Handled, PendingTask, RequestContext
from ottla.coordinator.groups.group import CLASSIC
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from ottla.coordinator.groups.shard import GroupShard

NOT_FOUND_SINCE = 6
DEAD = "Dead"
"""What a group that is not there is said to be."""


def handle(context: RequestContext, request: DescribeGroupsRequest) -> Handled:
    return PendingTask(_describe_all(context, request))


def refuse(context: RequestContext, request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_refused(group_id, error) for group_id in request.groups])


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code_of(error), error_message=str(error))


async def _describe_all(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    described = [await _describe_one(context, group_id) for group_id in request.groups]
    for group in described:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


async def _describe_one(context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        return await context.services.coordinators.groups.look(
            group_id, lambda shard, now: _describe(shard, group_id, context.version)
        )
    except KafkaError as error:
        return _refused(group_id, error)


def _describe(shard: GroupShard, group_id: str, version: int) -> DescribedGroup:
    group = shard.table.by_id.get(group_id)
    if group is not None and group.type == CLASSIC:
        return shard.classic.describe(group_id)
    described = DescribedGroup(group_id=group_id, group_state=DEAD)
    if version >= NOT_FOUND_SINCE:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = (
            f"there is no group {group_id!r}"
            if group is None
            else f"group {group_id!r} is not of the classic protocol: ask with {group.type}GroupDescribe"
        )
    return described
