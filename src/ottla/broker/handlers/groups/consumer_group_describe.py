"""ConsumerGroupDescribe: groups of the consumer protocol with their members, current and target assignments.

v1: member type, consumer or classic.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.handlers.groups.group_calls import code_of, describe_each
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(context: RequestContext, request: ConsumerGroupDescribeRequest) -> Handled:
    return PendingTask(_describe(context, request))


async def _describe(context: RequestContext, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    describe = partial(_describe_one, context)
    groups = await describe_each(context, request.group_ids, describe, request.include_authorized_operations)
    return ConsumerGroupDescribeResponse(groups=groups)


async def _describe_one(context: RequestContext, group_id: str) -> DescribedGroup:
    version = context.version
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group id must not be empty")
        groups = context.services.coordinators.groups
        described: DescribedGroup = await groups.look(group_id, lambda shard, now: shard.consumer.describe(group_id, version))
        _check_topics(context, described)
        return described
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=code_of(error), error_message=str(error))


def _check_topics(context: RequestContext, group: DescribedGroup) -> None:
    """Raise TOPIC_AUTHORIZATION_FAILED if a member is assigned a topic that the client may not see."""
    if context.grants is None:
        return
    assignments = (each for member in group.members for each in (member.assignment, member.target_assignment))
    for name in {topic.topic_name for assignment in assignments for topic in assignment.topic_partitions}:
        context.require(Operation.DESCRIBE, ResourceType.TOPIC, name)


def refuse(context: RequestContext, request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=code_of(error), error_message=str(error))
            for group_id in request.group_ids
        ]
    )
