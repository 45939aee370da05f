"""ListGroups: the groups that this broker coordinates, filtered by state or type.

v4: states, and a filter for them. v5: types, and a filter for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.broker.handlers.groups.group_calls import code_of
from ottla.broker.handlers.portions import PORTION
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.coordinator.contract import Instant
from ottla.coordinator.groups.shard import GroupShard
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
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

    def listed(group_ids: Sequence[str], shard: GroupShard, now: Instant) -> list[ListedGroup]:
        return [
            group.listed()
            for group in map(shard.table.by_id.get, group_ids)
            if group is not None
            and (not states or group.state.lower() in states)
            and (not types or group.type.lower() in types)
        ]

    found: list[ListedGroup] = []
    may_see_all = context.allows_on_cluster(Operation.DESCRIBE)
    pauses = Pauses(context)
    for hosted in list(groups):
        group_ids = list(hosted.shard.table.by_id)
        for start in range(0, len(group_ids), PORTION):
            portion = group_ids[start : start + PORTION]
            if not may_see_all:
                portion = [
                    each for each in portion if context.allows(Operation.DESCRIBE, ResourceType.GROUP, each, is_silent=True)
                ]
            found += await groups.look_into(hosted, partial(listed, portion))
            await pauses.here()
    return ListGroupsResponse(groups=found)
