"""AlterPartitionReassignments: moves partitions to other brokers. The controller decides.

v1: the client may forbid a change of the replication factor.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(context: RequestContext, request: AlterPartitionReassignmentsRequest) -> Handled:
    return ask_controller(context, request, request.timeout_ms)


def refuse(
    context: RequestContext, request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    response = AlterPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
    for topic in request.topics:
        results = [
            ReassignablePartitionResponse(partition_index=each.partition_index, error_code=error.code, error_message=str(error))
            for each in topic.partitions
        ]
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return response
