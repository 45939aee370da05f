"""FindCoordinator: which broker coordinates a group or a transactional id.

That is the leader of the partition of the internal topic that the key hashes to. The first request creates the topic. Apache
Kafka answers COORDINATOR_NOT_AVAILABLE until it exists, and the client asks again; here the request is parked until it exists.

v1: key type (group or transactional id), error message. v4: several keys in one request. v6: key type 2 for share groups, which
are not served; it is for nodes alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.handlers.cluster.cluster_view import alive_endpoint
from ottla.broker.requests.context import Handled, PendingTask, RequestContext, future_of
from ottla.broker.requests.scheduler import in_slices
from ottla.broker.runtime.coordinators.internal_topics import ensure_internal_topic
from ottla.coordinator.placement import partition_for
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.env import Steps

MANY_KEYS_SINCE = 4
TOPIC_OF_TYPE = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}
_RESOURCES = {OFFSETS_TOPIC: ResourceType.GROUP, TRANSACTIONS_TOPIC: ResourceType.TRANSACTIONAL_ID}
_SHARE = 2
_NO_NODE = -1


class FoundCoordinator(NamedTuple):
    """The coordinator of one key."""

    node_id: int
    host: str
    port: int


def handle(context: RequestContext, request: FindCoordinatorRequest) -> Handled:
    topic = TOPIC_OF_TYPE.get(request.key_type)
    if request.key_type == _SHARE:
        context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    if topic is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"there is no coordinator of type {request.key_type} here: 0 is for groups, 1 for transactions",
        )
    if context.services.metadata.topic(topic) is None and _is_any_allowed(context, request, topic):
        return PendingTask(_make_and_answer(context, request, topic))
    return in_slices(context, _answer(context, request, topic))


async def _make_and_answer(context: RequestContext, request: FindCoordinatorRequest, topic: str) -> FindCoordinatorResponse:
    await ensure_internal_topic(context.services, topic)
    response: FindCoordinatorResponse = await future_of(in_slices(context, _answer(context, request, topic)))
    return response


def _answer(context: RequestContext, request: FindCoordinatorRequest, topic: str) -> Steps[Handled]:
    if context.version < MANY_KEYS_SINCE:
        found = _find(context, topic, request.key)
        return FindCoordinatorResponse(error_message="NONE", node_id=found.node_id, host=found.host, port=found.port)
    response = FindCoordinatorResponse()
    for key in request.coordinator_keys:
        yield None
        try:
            found = _find(context, topic, key)
        except KafkaError as error:
            response.coordinators.append(_refused(key, error))
            continue
        response.coordinators.append(
            Coordinator(key=key, node_id=found.node_id, host=found.host, port=found.port, error_message="")
        )
    return response


def _is_any_allowed(context: RequestContext, request: FindCoordinatorRequest, topic: str) -> bool:
    """Whether the client may know the coordinator of any of its keys: others make no topic."""
    keys = request.coordinator_keys if context.version >= MANY_KEYS_SINCE else [request.key]
    return any(context.allows(Operation.DESCRIBE, _RESOURCES[topic], key, is_silent=True) for key in keys)


def _find(context: RequestContext, topic: str, key: str) -> FoundCoordinator:
    context.require(Operation.DESCRIBE, _RESOURCES[topic], key)
    known = context.services.metadata.topic(topic)
    if known is None:  # the controller on another node has created it, and this node does not know yet
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the internal topic {topic} is being created: ask again")
    leader = known.partitions[partition_for(key, len(known.partitions))].leader
    endpoint = alive_endpoint(context.services.metadata.image, leader, context.connection.listener)
    if endpoint is None:
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the partition of {topic} that keeps {key!r} has no leader now: ask again"
        )
    return FoundCoordinator(leader, endpoint.host, endpoint.port)


def refuse(context: RequestContext, request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    if context.version < MANY_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=error.code, error_message=str(error), node_id=_NO_NODE, port=_NO_NODE)
    return FindCoordinatorResponse(coordinators=[_refused(key, error) for key in request.coordinator_keys])


def _refused(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(key=key, node_id=_NO_NODE, port=_NO_NODE, error_code=error.code, error_message=str(error))
