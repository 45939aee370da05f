"""OffsetForLeaderEpoch: the end offset of a leader epoch, from which a consumer or follower sees that records were truncated.

v3: replica id, which makes no difference here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.handlers.data.hosted_partitions import ask
from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import in_slices
from ottla.errors import KafkaError
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from ottla.env import Steps


def handle(context: RequestContext, request: OffsetForLeaderEpochRequest) -> Handled:
    return in_slices(context, _answer_all(context, request))


def _answer_all(context: RequestContext, request: OffsetForLeaderEpochRequest) -> Steps[Handled]:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answer = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(answer)
        for each in topic.partitions:
            answer.partitions.append(_answer_one(context, topic.topic, each))
            yield None
    return response


def refuse(context: RequestContext, request: OffsetForLeaderEpochRequest, error: KafkaError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[EpochEndOffset(partition=each.partition, error_code=error.code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer_one(context: RequestContext, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition)
    try:
        partition = context.services.partitions.leader(topic, asked.partition, asked.current_leader_epoch)
        found = ask(partition, lambda log: log.end_offset_for_epoch(asked.leader_epoch))
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    if found is not None:
        answer.leader_epoch, answer.end_offset = found
    return answer
