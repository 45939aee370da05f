"""CreatePartitions: adds partitions to topics. The controller decides.

All versions (0 to 3) have the same fields.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle(context: RequestContext, request: CreatePartitionsRequest) -> Handled:
    return ask_controller(context, request, request.timeout_ms)


def refuse(context: RequestContext, request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    response = CreatePartitionsResponse()
    response.results = [
        CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=str(error))
        for topic in request.topics
    ]
    return response
