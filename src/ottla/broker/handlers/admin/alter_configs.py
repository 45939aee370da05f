"""AlterConfigs: replaces all dynamic settings of a resource. Settings that the request does not name are removed.

All versions (0 to 2) have the same fields.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.config_changes import (
    Outcomes,
    check_broker,
    check_names,
    check_type,
    key_of,
    refused_repeats,
    require_change,
    responses_to,
    take_decided,
)
from ottla.broker.handlers.admin.controller_calls import decided
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.errors import KafkaError, drop_frames
from ottla.metadata.controller.config_responses import resource_responses
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResourceResponse, AlterConfigsResponse

_TYPES = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


def handle(context: RequestContext, request: AlterConfigsRequest) -> Handled:
    return PendingTask(_alter(context, request))


def refuse(context: RequestContext, request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    outcomes: Outcomes = {key_of(resource): error for resource in request.resources}
    return AlterConfigsResponse(responses=resource_responses(AlterConfigsResourceResponse, request.resources, outcomes))


async def _alter(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    outcomes, pauses = refused_repeats(request.resources), Pauses(context)
    for resource in request.resources:
        await pauses.here()
        if key_of(resource) in outcomes:
            continue
        try:
            require_change(context, resource)
            check_names(resource)
            check_type(resource, _TYPES)
            if resource.resource_type == ResourceType.BROKER:
                after = {config.name: config.value for config in resource.configs if config.value is not None}
                check_broker(context, resource.resource_name, after)
        except KafkaError as error:
            outcomes[key_of(resource)] = drop_frames(error)
    wanted = [resource for resource in request.resources if key_of(resource) not in outcomes]
    if wanted:
        rest = AlterConfigsRequest(resources=wanted, validate_only=request.validate_only)
        take_decided(outcomes, (await decided(context, rest)).responses)
    return AlterConfigsResponse(responses=await responses_to(pauses, AlterConfigsResourceResponse, request.resources, outcomes))
