"""Shared by AlterConfigs and IncrementalAlterConfigs: the broker's checks, and the response.

The broker checks what only it knows: its own settings and loggers. The rest of the request goes to the controller. Both
outcomes become one response, in the order of the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ottla.broker.requests.context import RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.broker.services import Services
from ottla.config.values import InvalidConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.metadata import acls
from ottla.metadata.controller.config_responses import Response, resource_responses
from ottla.metadata.image.image import ConfigResource, ResourceType
from ottla.wire.messages import alter_configs, incremental_alter_configs

Outcomes = dict[ConfigResource, KafkaError | None]
"""Resource → why it was refused, or None if it was accepted."""

RESOURCES_ON_LOOP_MAX = 1000


class _Config(Protocol):
    name: str
    value: str | None


class _Resource(Protocol):
    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[_Config]: ...


_Decided = alter_configs.AlterConfigsResourceResponse | incremental_alter_configs.AlterConfigsResourceResponse
R = TypeVar("R", bound=_Resource)


def require_access(context: RequestContext, operation: int, config_type: int, name: str) -> None:
    """Raise the refusal unless the client may do `operation` to the settings of a resource.

    Settings of brokers, loggers and client metrics are the cluster's. Unknown types are refused as what they are, later.
    """
    if config_type == ResourceType.TOPIC:
        context.require(operation, acls.ResourceType.TOPIC, name)
    elif config_type == ResourceType.GROUP:
        context.require(operation, acls.ResourceType.GROUP, name)
    elif config_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS):
        context.require(operation, acls.ResourceType.CLUSTER)


def require_change(context: RequestContext, resource: _Resource) -> None:
    """Raise the refusal unless the client may change a resource's settings.

    The controller is asked with the client's principal; but a broker's loggers are its own, and a controller's are for nodes.
    """
    is_logger = resource.resource_type == ResourceType.BROKER_LOGGER
    if is_logger or context.connection.is_controller_listener:
        is_of_controller = is_logger and context.connection.is_controller_listener
        operation = acls.Operation.CLUSTER_ACTION if is_of_controller else acls.Operation.ALTER_CONFIGS
        require_access(context, operation, resource.resource_type, resource.resource_name)


def key_of(resource: _Resource) -> ConfigResource:
    return resource.resource_type, resource.resource_name


def refused_repeats(resources: Sequence[R]) -> Outcomes:
    """Resources that the request names more than once, with INVALID_REQUEST."""
    counts: dict[ConfigResource, int] = {}
    for resource in resources:
        counts[key_of(resource)] = counts.get(key_of(resource), 0) + 1
    repeated = KafkaError(ErrorCode.INVALID_REQUEST, "the resource comes more than once in the request")
    return {key: repeated for key, count in counts.items() if count > 1}


def check_names(resource: _Resource, may_be_null: frozenset[str] = frozenset()) -> None:
    """Raise INVALID_REQUEST for a setting that is named twice or has no value."""
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a setting comes more than once in the request")
    without = [config.name for config in resource.configs if config.value is None and config.name not in may_be_null]
    if without:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"without a value: {', '.join(without)}")


def check_broker(context: RequestContext, name: str, after: Mapping[str, str]) -> None:
    """Raise INVALID_REQUEST unless `after` are valid dynamic settings for this broker, or for all (an empty name).

    A controller takes settings of any broker: that broker has checked them, and the controller cannot.
    """
    services = context.services
    if context.connection.is_controller_listener and name and name != str(services.node_id):
        return
    if name:
        check_is_this_node(services, name)
    try:
        services.settings.check_change(after, per_broker=bool(name))
    except InvalidConfig as invalid:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(invalid)) from None


def check_is_this_node(services: Services, name: str) -> None:
    if name != str(services.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {services.node_id}, and the change is for broker {name!r}: ask that broker",
        )


def check_type(resource: _Resource, types: tuple[ResourceType, ...]) -> None:
    if resource.resource_type not in types:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"there is no resource type {resource.resource_type} with settings that could be changed"
        )


def take_decided(outcomes: Outcomes, decided: Sequence[_Decided]) -> None:
    """Add the controller's outcomes."""
    for each in decided:
        refused = each.error_code != ErrorCode.NONE
        error = KafkaError(each.error_code, each.error_message or error_name(each.error_code)) if refused else None
        outcomes[each.resource_type, each.resource_name] = error


async def responses_to(
    pauses: Pauses, kind: type[Response], resources: Sequence[_Resource], outcomes: Outcomes
) -> list[Response]:
    """One entry per resource. Those of many resources are made in a worker thread: 60,000 take 0.1 s."""
    call = partial(resource_responses, kind, resources, outcomes)
    return call() if len(resources) <= RESOURCES_ON_LOOP_MAX else await pauses.off_loop(call)
