"""IncrementalAlterConfigs: sets, removes, appends to or subtracts from single settings; sets the levels of loggers.

All versions (0 and 1) have the same fields.
"""

from __future__ import annotations

import logging

from ottla.broker.handlers.admin.config_changes import (
    Outcomes,
    check_broker,
    check_is_this_node,
    check_names,
    check_type,
    key_of,
    refused_repeats,
    require_change,
    responses_to,
    take_decided,
)
from ottla.broker.handlers.admin.controller_calls import decided
from ottla.broker.loggers import LEVELS, ROOT, Loggers, find_logger
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.errors import KafkaError, drop_frames
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.config_responses import resource_responses
from ottla.metadata.controller.configs import DELETE, SET, incremental_change
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

logger = logging.getLogger("ottla.broker.settings")

_LOCAL = (ResourceType.BROKER_LOGGER,)
_STORED = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


def handle(context: RequestContext, request: IncrementalAlterConfigsRequest) -> Handled:
    return PendingTask(_alter(context, request))


def refuse(
    context: RequestContext, request: IncrementalAlterConfigsRequest, error: KafkaError
) -> IncrementalAlterConfigsResponse:
    outcomes: Outcomes = {key_of(resource): error for resource in request.resources}
    return IncrementalAlterConfigsResponse(
        responses=resource_responses(AlterConfigsResourceResponse, request.resources, outcomes)
    )


async def _alter(context: RequestContext, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    services = context.services
    outcomes, pauses = refused_repeats(request.resources), Pauses(context)
    for resource in request.resources:
        await pauses.here()
        key = key_of(resource)
        if key in outcomes:
            continue
        try:
            require_change(context, resource)
            removed = frozenset(config.name for config in resource.configs if config.config_operation == DELETE)
            check_names(resource, may_be_null=removed)
            check_type(resource, _LOCAL + _STORED)
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                check_is_this_node(services, resource.resource_name)
                _change_loggers(services.settings.loggers, resource, request.validate_only)
                outcomes[key] = None
            elif resource.resource_type == ResourceType.BROKER:
                stored = services.metadata.image.configs.get(key, {})
                after = {**stored, **incremental_change(key, stored, resource.configs)}
                usable = {name: text for name, text in after.items() if text is not None}
                check_broker(context, resource.resource_name, usable)
        except KafkaError as error:
            outcomes[key] = drop_frames(error)
    wanted = [resource for resource in request.resources if key_of(resource) not in outcomes]
    if wanted:
        rest = IncrementalAlterConfigsRequest(resources=wanted, validate_only=request.validate_only)
        take_decided(outcomes, (await decided(context, rest)).responses)
    return IncrementalAlterConfigsResponse(
        responses=await responses_to(pauses, AlterConfigsResourceResponse, request.resources, outcomes)
    )


def _change_loggers(loggers: Loggers, resource: AlterConfigsResource, validate_only: bool) -> None:
    """Check all changes, then apply them."""
    known = loggers.levels()
    for config in resource.configs:
        if config.config_operation not in (SET, DELETE):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"logger {config.name}: a level can be set or removed, nothing else")
        name = find_logger(config.name, known)
        if config.config_operation == DELETE and name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the level of {ROOT} cannot be removed: set another")
        if config.config_operation == SET and config.value not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"logger {config.name} cannot have level {config.value}: use {', '.join(LEVELS)}"
            )
    if validate_only:
        return
    for config in resource.configs:
        level = config.value if config.config_operation == SET else None
        name = find_logger(config.name, known)
        loggers.set_level(name, level)
        logger.warning("logger %s now has %s", name, "the level of its parent" if level is None else f"level {level}")
