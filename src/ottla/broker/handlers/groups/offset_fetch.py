"""OffsetFetch: the committed offsets of groups.

v2: null means all topics; an error code for the group. v5: leader epoch. v7: the client may ask for stable offsets only. v8:
several groups in one request. v9: member id and epoch, which are checked. v10: topic ids instead of names.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from ottla.broker.handlers.groups.group_calls import code_of
from ottla.broker.handlers.portions import join, portions_of
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.broker.requests.topics import topic_name
from ottla.coordinator.contract import Effects, Instant, Reply
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.elements import has_many_elements
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from ottla.coordinator.groups.shard import GroupShard

GROUP_ERRORS_SINCE = 2
MANY_GROUPS_SINCE = 8
_NO_OFFSET = -1
PARTITIONS_MAX = 50_000
"""With this many partitions a response takes no further group. Clients ask again for the groups left out."""


def handle(context: RequestContext, request: OffsetFetchRequest) -> Handled:
    groups = _groups_of(context, request)
    if len(groups) != 1 or has_many_elements(request):
        return PendingTask(_fetch_all(context, request, groups))
    (group,) = groups
    if (denied := _denied(context, group)) is not None:
        return _response(context, [denied])
    group, refused = _without_denied(context, group)

    def decide(shard: GroupShard, reply: Reply, now: Instant) -> Effects:
        found = _fetch(context, request, group, shard)
        return Effects.answer(reply, _response(context, [_joined(context, group, found, refused)]))

    return context.services.coordinators.groups.ask(group.group_id, decide, may_write=False)


def refuse(context: RequestContext, request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    return _response(context, [_refused(context, group, error) for group in _groups_of(context, request)])


def _groups_of(context: RequestContext, request: OffsetFetchRequest) -> list[OffsetFetchRequestGroup]:
    if context.version >= MANY_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes) for each in request.topics]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


async def _fetch_all(
    context: RequestContext, request: OffsetFetchRequest, groups: list[OffsetFetchRequestGroup]
) -> OffsetFetchResponse:
    found: list[OffsetFetchResponseGroup] = []
    count, pauses = 0, Pauses(context)
    for group in groups:
        if count >= PARTITIONS_MAX:
            full = f"the response has {count} partitions already and takes no more groups: ask again for the others"
            found.append(_refused(context, group, KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, full)))
            continue
        if (denied := _denied(context, group)) is None:
            allowed, refused = _without_denied(context, group)
            denied = _joined(context, allowed, await _fetch_in_portions(context, request, allowed, pauses), refused)
        found.append(denied)
        count += sum(len(topic.partitions) for topic in found[-1].topics)
        await pauses.here()
    return _response(context, found)


async def _fetch_in_portions(
    context: RequestContext, request: OffsetFetchRequest, group: OffsetFetchRequestGroup, pauses: Pauses
) -> OffsetFetchResponseGroup:
    if group.topics is None or not has_many_elements(group):
        return await _fetch_later(context, request, group)
    joined: OffsetFetchResponseGroup | None = None
    for portion in portions_of(group.topics, "partition_indexes"):
        part = copy(group)
        part.topics = portion
        found = await _fetch_later(context, request, part)
        if found.error_code:
            return found
        if joined is None:
            joined = found
        else:
            join(joined, found, "topics")
        await pauses.here()
    assert joined is not None
    return joined


async def _fetch_later(
    context: RequestContext, request: OffsetFetchRequest, group: OffsetFetchRequestGroup
) -> OffsetFetchResponseGroup:
    try:
        return await context.services.coordinators.groups.look(
            group.group_id, lambda shard, now: _fetch(context, request, group, shard)
        )
    except KafkaError as error:
        return _refused(context, group, error)


def _fetch(
    context: RequestContext, request: OffsetFetchRequest, group: OffsetFetchRequestGroup, shard: GroupShard
) -> OffsetFetchResponseGroup:
    try:
        return shard.offsets.fetch(group, request.require_stable, context.version)
    except KafkaError as error:
        return _refused(context, group, error)


def _denied(context: RequestContext, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup | None:
    """The answer if the client may not see the group."""
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
    except KafkaError as error:
        return _refused(context, group, error)
    return None


def _without_denied(
    context: RequestContext, group: OffsetFetchRequestGroup
) -> tuple[OffsetFetchRequestGroup, list[OffsetFetchResponseTopics]]:
    """The request for the topics that the client may see, and the answers for the others that it names."""
    if context.grants is None or group.topics is None:
        return group, []
    allowed: list[OffsetFetchRequestTopics] = []
    refused: list[OffsetFetchResponseTopics] = []
    for topic in group.topics:
        name = topic.name or topic_name(context, topic.topic_id)
        if name is None or context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            allowed.append(topic)
        else:
            partitions = [_failed(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for index in topic.partition_indexes]
            refused.append(OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    if refused:
        group = copy(group)
        group.topics = allowed
    return group, refused


def _joined(
    context: RequestContext,
    group: OffsetFetchRequestGroup,
    found: OffsetFetchResponseGroup,
    refused: list[OffsetFetchResponseTopics],
) -> OffsetFetchResponseGroup:
    """The whole answer; of all topics, those are left out that the client may not see."""
    if found.error_code:
        return found
    if context.grants is not None and group.topics is None:
        found.topics = [
            topic
            for topic in found.topics
            if (name := topic.name or topic_name(context, topic.topic_id)) is None
            or context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name, is_silent=True)
        ]
    found.topics += refused
    return found


def _failed(index: int, code: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=code)


def _refused(context: RequestContext, group: OffsetFetchRequestGroup, error: KafkaError) -> OffsetFetchResponseGroup:
    code = code_of(error)
    if context.version >= GROUP_ERRORS_SINCE:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    response = OffsetFetchResponseGroup(group_id=group.group_id)
    for topic in group.topics or ():
        partitions = [_failed(index, code) for index in topic.partition_indexes]
        response.topics.append(OffsetFetchResponseTopics(name=topic.name, partitions=partitions))
    return response


def _response(context: RequestContext, groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    if context.version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(name=topic.name, partitions=[_old_shape(each) for each in topic.partitions])
            for topic in group.topics
        ],
    )


def _old_shape(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )
