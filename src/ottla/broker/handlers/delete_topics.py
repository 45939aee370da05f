"""DeleteTopics: the controller decides. Up to version 5 topics have names only, later names or ids."""

from __future__ import annotations

from ottla.broker.handlers.controller_calls import ask_controller
from ottla.broker.request import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.metadata.controller.topic_deletion import delete_topics
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def handle(context: RequestContext, request: DeleteTopicsRequest) -> Handled:
    asked_for = _asked_for(request)
    return ask_controller(context, lambda state, now_ms: delete_topics(state, asked_for, now_ms), request.timeout_ms)


def _asked_for(request: DeleteTopicsRequest) -> DeleteTopicsRequest:
    """The request in the shape of version 6, whatever its version."""
    topics = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    return DeleteTopicsRequest(topics=topics, timeout_ms=request.timeout_ms)


def refuse(context: RequestContext, request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    response = DeleteTopicsResponse()
    response.responses = [
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=str(error))
        for topic in _asked_for(request).topics
    ]
    return response
