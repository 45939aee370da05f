"""DescribeConfigs: settings of topics, brokers and other resources, for `configs` and `topics describe`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.cli.common.cluster import Cluster, refusal, topic_refusal
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

RESOURCES_PER_REQUEST = 200


class ConfigSource(IntEnum):
    """Where a value comes from, by the protocol's numbers and names."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Resource(NamedTuple):
    """Something that has settings. A broker with an empty name means the defaults of all brokers."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        if self.type is ResourceType.BROKER and not self.name:
            return "the brokers' defaults"
        return f"{self.type.name.lower().replace('_', ' ')} {self.name}"

    @property
    def broker_id(self) -> int | None:
        """The broker that must be asked; None where any can answer."""
        is_of_broker = self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
        return int(self.name) if is_of_broker and self.name else None


def source_name(number: int) -> str:
    """The protocol's name of a source, or `SOURCE_<number>` for one we do not know."""
    return ConfigSource(number).name if number in ConfigSource._value2member_map_ else f"SOURCE_{number}"


async def describe_configs(
    cluster: Cluster, resources: Sequence[Resource], keys: Sequence[str] | None = None, documentation: bool = False
) -> dict[Resource, list[DescribeConfigsResourceResult]]:
    """The settings of each of `resources`, sorted by name. Raises a `KafkaError` for the first resource with an error."""
    found: dict[Resource, list[DescribeConfigsResourceResult]] = {}
    common = [resource for resource in resources if resource.broker_id is None]
    for start in range(0, len(common), RESOURCES_PER_REQUEST):
        request = _request(common[start : start + RESOURCES_PER_REQUEST], keys, documentation)
        _take(found, await cluster.ask_any(request))
    for resource in resources:
        if resource.broker_id is not None:
            _take(found, await cluster.ask_broker(resource.broker_id, _request([resource], keys, documentation)))
    return {resource: found[resource] for resource in resources}


def _request(resources: Sequence[Resource], keys: Sequence[str] | None, documentation: bool) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configuration_keys=None if keys is None else list(keys),
            )
            for resource in resources
        ],
        include_synonyms=True,
        include_documentation=documentation,
    )


def _take(found: dict[Resource, list[DescribeConfigsResourceResult]], response: DescribeConfigsResponse) -> None:
    for result in response.results:
        resource = Resource(ResourceType(result.resource_type), result.resource_name)
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise topic_refusal(result.error_code, resource.name)
        if result.error_code:
            raise refusal(result.error_code, str(resource), result.error_message)
        found[resource] = sorted(result.configs, key=lambda config: config.name)
