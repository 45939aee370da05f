"""CreateTopics: creates topics. The controller decides.

v5: the response has partition count, replication factor and settings of each topic. v7: topic ids in the response.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, PendingTask, RequestContext, future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse

_NOT_SAID = -1


def handle(context: RequestContext, request: CreateTopicsRequest) -> Handled:
    if context.grants is not None and context.connection.is_controller_listener:
        return PendingTask(_create(context, request))
    return ask_controller(context, request, request.timeout_ms)


async def _create(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """The controller's response, without the settings of topics whose settings the client may not see."""
    response: CreateTopicsResponse = await future_of(ask_controller(context, request, request.timeout_ms))
    for topic in response.topics:
        if topic.error_code == ErrorCode.NONE and not context.allows(
            Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name, is_silent=True
        ):
            topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic.num_partitions = topic.replication_factor = _NOT_SAID
            topic.configs = []
    return response


def refuse(context: RequestContext, request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    response = CreateTopicsResponse()
    text = str(error)
    if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # Kafka's words, and what is missing
        text = f"Authorization failed.{text.removeprefix('Topic authorization failed.')} or on the cluster"
    response.topics = [
        CreatableTopicResult(name=topic.name, error_code=error.code, error_message=text) for topic in request.topics
    ]
    return response
