"""ListGroups: the groups that this broker coordinates, filtered by state or type.

v4: states, and a filter for them. v5: types, and a filter for them.
"""

from __future__ import annotations

import asyncio

from ottla.broker.handlers.groups.group_calls import code_of
from ottla.broker.request import Handled, PendingTask, RequestContext
from ottla.coordinator.contract import Instant
from ottla.coordinator.groups.shard import GroupShard
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(context: RequestContext, request: ListGroupsRequest) -> Handled:
    return PendingTask(_list(context, request))


def refuse(context: RequestContext, request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=code_of(error))


async def _list(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    groups = context.services.coordinators.groups
    if groups.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "some groups of this broker are still being loaded: ask again")
    states = {state.strip().lower() for state in request.states_filter}
    types = {each.lower() for each in request.types_filter}

    def listed(shard: GroupShard, now: Instant) -> list[ListedGroup]:
        return [
            group.listed()
            for group in shard.table.by_id.values()
            if (not states or group.state.lower() in states) and (not types or group.type.lower() in types)
        ]

    found = []
    for hosted in list(groups):
        found += await groups.look_into(hosted, listed)
        await asyncio.sleep(0)  # there may be very many groups: lets other tasks run between the shards
    return ListGroupsResponse(groups=found)
