"""ListPartitionReassignments: the partitions that are being moved to other brokers. All others are left out.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(context: RequestContext, request: ListPartitionReassignmentsRequest) -> Handled:
    return ask_controller(context, request, request.timeout_ms)


def refuse(
    context: RequestContext, request: ListPartitionReassignmentsRequest, error: KafkaError
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
