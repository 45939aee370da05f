"""ListConfigResources: the resources that have settings, by type.

v0: only client metrics. v1: all types, and a filter for them.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import off_loop
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import MetadataImage, ResourceType
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.list_config_resources import ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse

_ALL = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)
"""In the order in which Kafka lists them."""


def handle(context: RequestContext, request: ListConfigResourcesRequest) -> Handled:
    supported = (ResourceType.CLIENT_METRICS,) if context.version == 0 else _ALL
    wanted = frozenset(request.resource_types or supported)
    for type_ in wanted:
        if type_ not in supported:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"resources of type {type_} cannot be listed")
    image = context.services.metadata.image
    if len(image.topics.by_name) + len(image.configs) + len(wanted) > MANY_ELEMENTS:
        return off_loop(context, partial(_listed, image, wanted))
    return _listed(image, wanted)


def _listed(image: MetadataImage, wanted: Collection[int]) -> ListConfigResourcesResponse:
    named = {
        ResourceType.GROUP: sorted(name for type_, name in image.configs if type_ == ResourceType.GROUP),
        ResourceType.CLIENT_METRICS: sorted(name for type_, name in image.configs if type_ == ResourceType.CLIENT_METRICS),
        ResourceType.BROKER_LOGGER: [str(broker_id) for broker_id in sorted(image.cluster.brokers)],
        ResourceType.BROKER: [str(broker_id) for broker_id in sorted(image.cluster.brokers)],
        ResourceType.TOPIC: sorted(image.topics.by_name),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_type=int(type_), resource_name=name)
            for type_ in _ALL
            if type_ in wanted
            for name in named[type_]
        ]
    )


def refuse(context: RequestContext, request: ListConfigResourcesRequest, error: KafkaError) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)
