"""Settings of topics, brokers, groups and client metrics subscriptions: describe, change, list who has any."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.checks import config_text, listed, mapping, member, member_or_unknown, text, texts
from ottla.client.admin.requests import raise_refused, refused, refused_or, to_controller
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster, topic_error
from ottla.errors import ArgumentError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

RESOURCES_PER_REQUEST = 200
"""A topic's settings are about 10 kB in a response: all topics of a large cluster would be too many for one."""


class ConfigResourceType(IntEnum):
    """What has settings."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(IntEnum):
    """The type of a setting's value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigResource(NamedTuple):
    """Something that has settings: `ConfigResource("topic", "orders")`. A broker of the name "" means all brokers' defaults."""

    type: ConfigResourceType | str
    name: str

    def __str__(self) -> str:
        if self.type is ConfigResourceType.BROKER and not self.name:
            return "the brokers' defaults"
        return f"{self.type_name.replace('_', ' ')} {self.name}"

    @property
    def type_name(self) -> str:
        """The name of the type in lower case: `topic`, `client_metrics`."""
        return (self.type if isinstance(self.type, str) else self.type.name).lower()


class ConfigSynonym(NamedTuple):
    """Another place that a setting's value could come from, in order of precedence."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting and its value. The value of a sensitive setting is None."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]

    @property
    def is_default(self) -> bool:
        """Whether nothing but Kafka's default sets it."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigOperation(IntEnum):
    """What to do with a setting. APPEND and SUBTRACT are for settings that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """A change of one setting in its full form."""

    operation: ConfigOperation | str
    value: object = None


ResourceKey = ConfigResource | tuple[str, str]


async def describe_configs(
    cluster: Cluster,
    resources: Iterable[ResourceKey],
    *,
    names: Iterable[str] | None = None,
    include_synonyms: bool = False,
    include_documentation: bool = False,
) -> Results[ConfigResource, dict[str, ConfigEntry]]:
    """The settings of resources, by name: `describe_configs([("topic", "orders")])`. `names` limits which settings."""
    wanted = list(dict.fromkeys(_resource(each, "resources") for each in listed(resources, "resources")))
    keys = None if names is None else texts(names, "names")
    places: dict[int | None, list[ConfigResource]] = {}
    for each in wanted:
        places.setdefault(_place(each), []).append(each)

    async def ask(broker_id: int | None, items: list[ConfigResource]) -> DescribeConfigsResponse:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=int(each.type), resource_name=each.name, configuration_keys=keys)
                for each in items
            ],
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        answer = cluster.ask_any(request) if broker_id is None else cluster.ask_broker(broker_id, request)
        response: DescribeConfigsResponse = await answer
        return response

    found: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
    pages = [
        (broker_id, items[start : start + RESOURCES_PER_REQUEST])
        for broker_id, items in places.items()
        for start in range(0, len(items), RESOURCES_PER_REQUEST)
    ]
    for response in await asyncio.gather(*(ask(*page) for page in pages)):
        for result in response.results:
            resource = ConfigResource(member_or_unknown(ConfigResourceType, result.resource_type), result.resource_name)
            if result.error_code:
                found[resource] = _not_described(resource, result.error_code, result.error_message)
            else:
                found[resource] = {each.name: _entry(each) for each in sorted(result.configs, key=lambda each: each.name)}
    return results_for(wanted, found)


def _not_described(resource: ConfigResource, code: int, text: str | None) -> KafkaError:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return topic_error(code, resource.name)
    return refused(code, f"the settings of {resource}", text)


async def alter_configs(
    cluster: Cluster, changes: Mapping[ResourceKey, Mapping[str, object]], *, validate_only: bool = False
) -> Results[ConfigResource, None]:
    """Change single settings (incrementalAlterConfigs): `{("topic", "orders"): {"retention.ms": 1000}}`.

    A value sets, None goes back to the default, and `ConfigChange("append", "delete")` is the full form. Settings that are not
    named stay as they are.
    """
    mapping(changes, "changes")
    wanted = {_resource(key, "changes"): _alterable(key, value) for key, value in changes.items()}

    async def ask(items: list[ConfigResource], broker_id: int | None) -> dict[ConfigResource, KafkaError | None]:
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(resource_type=int(each.type), resource_name=each.name, configs=wanted[each])
                for each in items
            ],
            validate_only=validate_only,
        )
        answer = cluster.ask_controller(request) if broker_id is None else cluster.ask_broker(broker_id, request)
        response: IncrementalAlterConfigsResponse = await answer
        found: dict[ConfigResource, KafkaError | None] = {}
        for each in response.responses:
            resource = ConfigResource(member_or_unknown(ConfigResourceType, each.resource_type), each.resource_name)
            about = f"the settings of {resource} were not changed"
            found[resource] = refused_or(each.error_code, about, each.error_message, None)
        return found

    found: dict[ConfigResource, KafkaError | None] = {}
    common = [each for each in wanted if _place(each) is None]
    if common:
        found |= await to_controller(cluster, common, lambda items: ask(items, None))
    for each in wanted:
        if _place(each) is not None:
            found |= await ask([each], _place(each))
    return results_for(wanted, found)


async def list_config_resources(
    cluster: Cluster, types: Iterable[ConfigResourceType | str] | None = None
) -> list[ConfigResource]:
    """The resources that have settings of their own, or can have them: of these types (None: of all)."""
    asked = [] if types is None else [int(member(ConfigResourceType, each, "types")) for each in listed(types, "types")]
    response: ListConfigResourcesResponse = await cluster.ask_any(ListConfigResourcesRequest(resource_types=asked))
    raise_refused(response.error_code, "the resources with settings cannot be listed")
    return sorted(
        ConfigResource(member_or_unknown(ConfigResourceType, each.resource_type), each.resource_name)
        for each in response.config_resources
    )


async def list_client_metrics_resources(cluster: Cluster) -> list[str]:
    """The names of the client metrics subscriptions (KIP-714)."""
    return [each.name for each in await list_config_resources(cluster, [ConfigResourceType.CLIENT_METRICS])]


def _resource(key: ResourceKey, argument: str) -> ConfigResource:
    if not isinstance(key, tuple) or len(key) != 2 or not isinstance(key[1], str):
        raise TypeError(f'{argument}: a resource is ConfigResource(type, name), such as ("topic", "orders"), not {key!r}')
    kind = member(ConfigResourceType, key[0], f"{argument}: type")
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        if key[1] and not (key[1].isascii() and key[1].isdigit()):
            raise ArgumentError(f"{argument}: the name of a broker is its id, not {key[1]!r}")
    else:
        text(key[1], f"{argument}: name")
    return ConfigResource(kind, key[1])


def _place(resource: ConfigResource) -> int | None:
    """The broker that must be asked; None where any can answer."""
    is_of_broker = resource.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
    return int(resource.name) if is_of_broker and resource.name else None


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        member_or_unknown(ConfigSource, config.config_source),
        config.read_only,
        config.is_sensitive,
        member_or_unknown(ConfigType, config.config_type),
        config.documentation,
        tuple(ConfigSynonym(each.name, each.value, member_or_unknown(ConfigSource, each.source)) for each in config.synonyms),
    )


def _alterable(key: ResourceKey, settings: Mapping[str, object]) -> list[AlterableConfig]:
    mapping(settings, f"changes[{key!r}]")
    found = []
    for name, value in settings.items():
        argument = f"changes[{key!r}][{name!r}]"
        text(name, f"changes[{key!r}]: name of a setting")
        change = value if isinstance(value, ConfigChange) else None
        if change is None:
            change = ConfigChange(ConfigOperation.DELETE if value is None else ConfigOperation.SET, value)
        operation = member(ConfigOperation, change.operation, argument)
        given = None if operation is ConfigOperation.DELETE else config_text(change.value, argument)
        found.append(AlterableConfig(name=name, config_operation=operation, value=given))
    return found
