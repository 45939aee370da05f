"""DeleteTopics: deletes topics. The controller decides.

v3: TOPIC_DELETION_DISABLED; older clients get INVALID_REQUEST. v5: error messages. v6: topics by name or id.
"""

from __future__ import annotations

from copy import copy

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, PendingTask, RequestContext, future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse


def handle(context: RequestContext, request: DeleteTopicsRequest) -> Handled:
    if (
        context.grants is not None
        and context.connection.is_controller_listener
        and not context.allows_on_cluster(Operation.DELETE)
    ):
        return PendingTask(_delete_allowed(context, request))
    return ask_controller(context, request, request.timeout_ms)


async def _delete_allowed(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete those topics that the client may see and delete."""
    denied: list[DeletableTopicResult] = []
    allowed, rest = copy(request), []
    for topic in request.topics:
        if (refused := _refused(context, topic.name, topic.topic_id)) is None:
            rest.append(topic)
        else:
            denied.append(refused)
    names = []
    for name in request.topic_names:
        if (refused := _refused(context, name, ZERO_UUID)) is None:
            names.append(name)
        else:
            denied.append(refused)
    allowed.topics, allowed.topic_names = rest, names
    response = DeleteTopicsResponse()
    if rest or names:
        response = await future_of(ask_controller(context, allowed, request.timeout_ms))
    response.responses += denied
    return response


def _refused(context: RequestContext, name: str | None, topic_id: Uuid) -> DeletableTopicResult | None:
    """The answer for a topic that may not be deleted. What it does not show is what its client may not see."""
    metadata = context.services.metadata
    known = metadata.topic_by_id(topic_id) if name is None else metadata.topic(name)
    if known is None and name is None:
        return None  # there is no such id: the controller says so
    topic_name = name if name is not None else known.name if known is not None else ""
    result = DeletableTopicResult(name=name, topic_id=topic_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert context.grants is not None, "asked only with an authorizer"
    result.error_message = str(context.grants.refusal(Operation.DELETE, ResourceType.TOPIC, None))
    if not context.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic_name):
        return result
    if known is None or context.allows(Operation.DELETE, ResourceType.TOPIC, topic_name):
        return None
    result.name, result.topic_id = known.name, known.id if name is None else ZERO_UUID
    return result


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
