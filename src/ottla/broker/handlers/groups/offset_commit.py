"""OffsetCommit: where a group's members, or a consumer without a group, have got to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.handlers.groups.group_calls import caller_of, code_of
from ottla.broker.request import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.dispatch import AnswersFrames
    from ottla.broker.services import Services


def handle(context: RequestContext, request: OffsetCommitRequest) -> Handled:
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.offsets.commit(request, caller, reply, now)
    )


def frame_answers(services: Services) -> AnswersFrames:
    """What answers requests without taking them apart, where it can."""
    from ottla.broker.handlers.fast_path.commit_frames import FrameAnswers  # late, as all of the coordinator

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
