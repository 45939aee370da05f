"""OffsetCommit: commits offsets for a member of a group, or for a consumer that assigns its partitions itself.

v2 to v4: retention time of the offsets. v6: leader epoch. v7: group.instance.id of static members. v9: members of the consumer
protocol commit with their member epoch; GROUP_ID_NOT_FOUND. v10: topic ids instead of names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.handlers.fast_path.commit_frames import FrameAnswers
from ottla.broker.handlers.groups.group_calls import caller_of, code_of
from ottla.broker.handlers.portions import PendingPortions, handle_in_portions
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.elements import has_many_elements
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.requests.pipeline import AnswersFrames
    from ottla.broker.services import Services


def handle(context: RequestContext, request: OffsetCommitRequest) -> Handled:
    if has_many_elements(request):
        return PendingPortions(handle_in_portions(context, request, _commit, refuse, "topics", "partitions"))
    return _commit(context, request)


def _commit(context: RequestContext, request: OffsetCommitRequest) -> Handled:
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.offsets.commit(request, caller, reply, now)
    )


def frame_answers(services: Services) -> AnswersFrames:
    """The fast path for plain commits: it answers frames without decoding them into messages."""
    return FrameAnswers(services)


def refuse(context: RequestContext, request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    code = code_of(error)
    response = OffsetCommitResponse()
    for topic in request.topics:
        results = [
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code) for each in topic.partitions
        ]
        response.topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=results))
    return response
