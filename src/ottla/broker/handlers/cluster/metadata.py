"""Metadata: brokers, topics and the leaders of their partitions. May create topics that are named and do not exist.

v1: null means all topics (in v0 an empty list does); replicas that are not alive are listed; controller, racks, is_internal.
v2: cluster id. v4: the client says whether topics may be created. v5: offline replicas. v6: LISTENER_NOT_FOUND. v7: leader
epoch. v8: authorized operations. v10: topic ids in the response. v11: no authorized operations for the cluster. v12: topics may
be requested by id. v13: an error code for the whole response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.handlers.cluster.cluster_view import (
    alive_broker_id,
    alive_endpoint,
    authorized_operations,
    unknown_topic_code,
    view_partition,
)
from ottla.broker.requests.context import Handled, PendingTask, RequestContext, future_of
from ottla.broker.requests.scheduler import Pauses, in_slices
from ottla.broker.runtime.coordinators.internal_topics import creatable, internal_topic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import INTERNAL_TOPICS, ZERO_UUID, Uuid, topic_name_fault
from ottla.metadata.acls import Operation, ResourceType
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState, Topic
from ottla.wire.apis import APIS
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.requests.context import RequestContext
    from ottla.broker.requests.scheduler import Pauses
    from ottla.broker.services import Services
    from ottla.env import Steps


_IDS_SINCE = 12


def handle(context: RequestContext, request: MetadataRequest) -> Handled:
    _check_ids(context.version, request)
    if _may_create(context, request):
        topics = context.services.metadata.image.topics.by_name
        missing = [
            topic.name
            for topic in request.topics or ()
            if topic.name is not None
            and topic.name not in topics
            and context.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
        if missing:
            return PendingTask(_create_and_answer(context, request, missing))
    return in_slices(context, _answer(context, request, {}))


def _check_ids(version: int, request: MetadataRequest) -> None:
    if version < _IDS_SINCE and any(topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics or ()):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Metadata version {version} cannot ask for topics by id: use names, or version {_IDS_SINCE}",
        )


def _asks_for_all(version: int, request: MetadataRequest) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _may_create(context: RequestContext, request: MetadataRequest) -> bool:
    return request.allow_auto_topic_creation and context.services.settings.current.auto_create_topics_enable


async def _create_and_answer(context: RequestContext, request: MetadataRequest, missing: list[str]) -> MetadataResponse:
    may_create = (
        missing
        if context.allows_on_cluster(Operation.CREATE)
        else [name for name in missing if context.allows(Operation.CREATE, ResourceType.TOPIC, name)]
    )
    failed = dict.fromkeys(set(missing).difference(may_create), int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    if may_create:
        failed |= await create_missing(context, may_create, Pauses(context))
    response: MetadataResponse = await future_of(in_slices(context, _answer(context, request, failed)))
    return response


def _answer(context: RequestContext, request: MetadataRequest, failed: dict[str, int]) -> Steps[Handled]:
    """The response, in steps of one topic; `failed` has the error codes of topics that could not be created."""
    image, listener = context.services.metadata.image, context.connection.listener
    controller_id = alive_broker_id(image, context.services.node_id)
    response = MetadataResponse(cluster_id=context.services.cluster_id, controller_id=controller_id)
    for broker in image.cluster.brokers.values():
        endpoint = alive_endpoint(image, broker.id, listener)
        if endpoint is not None:
            response.brokers.append(
                MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            )
    if _asks_for_all(context.version, request):
        topics: Iterator[MetadataResponseTopic | None] = (
            _describe(image, topic, context)
            if context.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, is_silent=True)
            else None
            for topic in image.topics.by_name.values()
        )
    else:
        topics = _named(context, image, request, failed)
    for topic in topics:
        if topic is not None:
            response.topics.append(topic)
        yield None
    if request.include_topic_authorized_operations:
        for described in response.topics:
            # As in Kafka, also for topics that do not exist.
            if described.name is not None and described.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                described.topic_authorized_operations = authorized_operations(context, ResourceType.TOPIC, described.name)
                yield None
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations(context, ResourceType.CLUSTER)
    return response


def _named(
    context: RequestContext, image: MetadataImage, request: MetadataRequest, failed: dict[str, int]
) -> Iterator[MetadataResponseTopic]:
    """The requested topics, each once, denied ones last. If one is requested by id, names are ignored, as in Kafka."""
    asked = request.topics or []
    ids = list(dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID))
    if ids:
        yield from (_by_id(context, image, topic_id) for topic_id in ids)
        return
    denied = [name for name, code in failed.items() if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    for name in dict.fromkeys(topic.name for topic in asked if topic.name is not None):
        if name in failed and failed[name] == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            continue
        if not context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            denied.append(name)
            continue
        topic = image.topics.by_name.get(name)
        if topic is not None:
            yield _describe(image, topic, context)
        else:
            code = failed.get(name) or unknown_topic_code(name)
            yield MetadataResponseTopic(name=name, error_code=code, is_internal=name in INTERNAL_TOPICS)
    for name in denied:
        yield MetadataResponseTopic(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _by_id(context: RequestContext, image: MetadataImage, topic_id: Uuid) -> MetadataResponseTopic:
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        return MetadataResponseTopic(name=None, topic_id=topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    if not context.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return MetadataResponseTopic(name=None, topic_id=topic_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _describe(image, topic, context)


def _describe(image: MetadataImage, topic: Topic, context: RequestContext) -> MetadataResponseTopic:
    described = MetadataResponseTopic(name=topic.name, topic_id=topic.id, is_internal=topic.name in INTERNAL_TOPICS)
    describe = _describe_partition if context.version > 0 else _describe_partition_in_version_0
    described.partitions = [
        describe(image, index, state, context.connection.listener) for index, state in sorted(topic.partitions.items())
    ]
    if context.version < 6:  # older clients do not know LISTENER_NOT_FOUND
        for partition in described.partitions:
            if partition.error_code == ErrorCode.LISTENER_NOT_FOUND:
                partition.error_code = ErrorCode.LEADER_NOT_AVAILABLE
    return described


def _describe_partition(image: MetadataImage, index: int, state: PartitionState, listener: str) -> MetadataResponsePartition:
    view = view_partition(image, state, listener)
    described = MetadataResponsePartition()
    described.error_code = view.error_code
    described.partition_index = index
    described.leader_id = view.leader
    described.leader_epoch = state.leader_epoch
    described.replica_nodes = list(state.replicas)
    described.isr_nodes = list(state.isr)
    described.offline_replicas = view.offline_replicas
    return described


def _describe_partition_in_version_0(
    image: MetadataImage, index: int, state: PartitionState, listener: str
) -> MetadataResponsePartition:
    """Clients of version 0 fail on a replica that is not among the brokers: it is left out, with REPLICA_NOT_AVAILABLE."""
    described = _describe_partition(image, index, state, listener)
    described.replica_nodes = [replica for replica in state.replicas if alive_endpoint(image, replica, listener)]
    described.isr_nodes = [replica for replica in state.isr if alive_endpoint(image, replica, listener)]
    if described.error_code == ErrorCode.NONE and len(described.replica_nodes) < len(state.replicas):
        described.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
    return described


def refuse(context: RequestContext, request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    response = MetadataResponse(error_code=error.code)
    response.topics = [
        MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id, error_code=error.code)
        for topic in request.topics or ()
    ]
    return response


_DEFAULT = -1


async def create_missing(context: RequestContext, names: Sequence[str], pauses: Pauses) -> dict[str, int]:
    """Create the topics `names` in the name of the client that asks; returns the error code of each that was not created."""
    services = context.services
    make = partial(_wanted, services, names)
    wanted, codes = await pauses.off_loop(make) if len(names) > MANY_ELEMENTS else make()
    if not wanted:
        return codes
    request = CreateTopicsRequest(topics=wanted)
    response = await services.channel.forward(ForwardedRequest.of(context, request, APIS[request.KEY].newest))
    await services.loader.caught_up()
    for result in response.topics:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            is_over_quota = result.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            codes[result.name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_over_quota else result.error_code
    return codes


def _wanted(services: Services, names: Sequence[str]) -> tuple[list[CreatableTopic], dict[str, int]]:
    """The topics to create, and the error codes of those whose names are not valid."""
    codes: dict[str, int] = {name: ErrorCode.INVALID_TOPIC_EXCEPTION for name in names if topic_name_fault(name) is not None}
    wanted: list[CreatableTopic] = []
    for name in dict.fromkeys(names):
        internal = internal_topic(name, services.settings.current)
        if internal is not None:
            wanted.append(creatable(name, internal))
        elif name not in codes and name not in INTERNAL_TOPICS:
            wanted.append(CreatableTopic(name=name, num_partitions=_DEFAULT, replication_factor=_DEFAULT))
    return wanted, codes
