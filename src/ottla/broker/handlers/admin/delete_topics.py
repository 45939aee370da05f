"""DeleteTopics: deletes topics. The controller decides.

v3: TOPIC_DELETION_DISABLED; older clients get INVALID_REQUEST. v5: error messages. v6: topics by name or id.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse


def handle(context: RequestContext, request: DeleteTopicsRequest) -> Handled:
    return ask_controller(context, request, request.timeout_ms)


def refuse(context: RequestContext, request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    response = DeleteTopicsResponse()
    wanted = [(topic.name, topic.topic_id) for topic in request.topics]
    response.responses = [
        DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=str(error))
        for name, topic_id in wanted
    ]
    response.responses += [
        DeletableTopicResult(name=name, error_code=error.code, error_message=str(error)) for name in request.topic_names
    ]
    return response
