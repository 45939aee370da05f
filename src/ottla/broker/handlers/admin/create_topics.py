"""CreateTopics: creates topics. The controller decides.

v5: the response has partition count, replication factor and settings of each topic. v7: topic ids in the response.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse


def handle(context: RequestContext, request: CreateTopicsRequest) -> Handled:
    return ask_controller(context, request, request.timeout_ms)


def refuse(context: RequestContext, request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    response = CreateTopicsResponse()
    response.topics = [
        CreatableTopicResult(name=topic.name, error_code=error.code, error_message=str(error)) for topic in request.topics
    ]
    return response
