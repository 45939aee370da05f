"""OffsetDelete: deletes a group's committed offsets of topics to which no member is subscribed.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.groups.group_calls import code_of
from ottla.broker.handlers.portions import PendingPortions, handle_in_portions
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.elements import has_many_elements
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(context: RequestContext, request: OffsetDeleteRequest) -> Handled:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group id must not be empty")
    if has_many_elements(request):
        return PendingPortions(handle_in_portions(context, request, _delete, refuse, "topics", "partitions"))
    return _delete(context, request)


def _delete(context: RequestContext, request: OffsetDeleteRequest) -> Handled:
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.offsets.delete(request, reply, now)
    )


def refuse(context: RequestContext, request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    code = code_of(error)
    if code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return OffsetDeleteResponse(error_code=code)
    topics = []
    for topic in request.topics:
        denied = [
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code) for each in topic.partitions
        ]
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=denied))
    return OffsetDeleteResponse(topics=topics)
