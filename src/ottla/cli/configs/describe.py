"""`ottla configs describe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.configs import ConfigSource, Resource, describe_configs, source_name
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.configs.entities import Entity, entity_arguments, find_entity
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.describe_configs import DescribeConfigsResourceResult
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

EXAMPLES = """\b
Examples:
  ottla configs describe topic orders              only settings of the topic itself
  ottla configs describe topic orders --all        every setting, with its source
  ottla configs describe broker 1 --all --docs     what each setting means
  ottla configs describe broker-defaults
  ottla configs describe topics                    all topics
"""

# The sources that Kafka calls "dynamic", by type: values set for the resource itself.
OWN_SOURCES = {
    ResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ResourceType.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}

Configs = Sequence[DescribeConfigsResourceResult]


@click.command("describe", epilog=EXAMPLES)
@entity_arguments
@click.option("--all", "show_all", is_flag=True, help="Every setting, not only those that were set for the resource itself.")
@click.option("--docs", is_flag=True, help="Show the broker's description of each setting.")
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(settings: ClientSettings, show_all: bool, docs: bool, as_json: bool, plain: bool, **arguments: Any) -> None:
    """Show the settings of topics, brokers, loggers and groups.

    TYPE is topic, broker, broker-defaults, broker-logger, group or client-metrics; without a NAME all of them are shown.
    """
    entity = find_entity(arguments)
    described = with_cluster(settings, lambda cluster: _describe(cluster, entity, show_all, docs))
    if as_json:
        print_json([_as_json(resource, configs) for resource, configs in described.items()])
        return
    for resource, configs in described.items():
        if is_for_people(as_json, plain):
            _print_table(resource, configs, docs)
        else:
            _print_lines(resource, configs, show_all, docs)


async def _describe(cluster: Cluster, entity: Entity, show_all: bool, docs: bool) -> dict[Resource, Configs]:
    resources = [entity.resource] if entity.name is not None else await _all_of(cluster, entity.type)
    described = await describe_configs(cluster, resources, documentation=docs)
    return {
        resource: configs if show_all else [each for each in configs if _is_own(resource, each)]
        for resource, configs in described.items()
    }


def _is_own(resource: Resource, config: DescribeConfigsResourceResult) -> bool:
    if resource == Resource(ResourceType.BROKER, ""):
        return config.config_source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return config.config_source == OWN_SOURCES[resource.type]


async def _all_of(cluster: Cluster, type_: ResourceType) -> list[Resource]:
    if type_ is ResourceType.TOPIC:
        return [Resource(type_, name) for name in await cluster.topics()]
    if type_ in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        await cluster.metadata([])
        brokers = [Resource(type_, str(broker_id)) for broker_id in sorted(cluster.brokers)]
        return [*brokers, Resource(type_, "")] if type_ is ResourceType.BROKER else brokers
    response: ListConfigResourcesResponse = await cluster.ask_any(ListConfigResourcesRequest(resource_types=[type_]))
    if response.error_code:
        raise refusal(response.error_code, "the cluster does not list resources with settings")
    return [Resource(type_, each.resource_name) for each in response.config_resources]


def _print_lines(resource: Resource, configs: Configs, show_all: bool, docs: bool) -> None:
    """Kafka's own lines."""
    if resource == Resource(ResourceType.BROKER, ""):
        say("Default configs for brokers in the cluster are:")
    else:
        kind = resource.type.name.lower().replace("_", "-")
        say(f"{'All' if show_all else 'Dynamic'} configs for {kind} {resource.name} are:")
    for each in configs:
        synonyms = ", ".join(f"{source_name(one.source)}:{one.name}={_text(one.value)}" for one in each.synonyms)
        sensitive = "true" if each.is_sensitive else "false"
        say(f"  {each.name}={_text(each.value)} sensitive={sensitive} synonyms={{{synonyms}}}")
        if docs and each.documentation:
            say(f"    {each.documentation}")


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _print_table(resource: Resource, configs: Configs, docs: bool) -> None:
    if not configs:
        say(f"{resource}: nothing was set; --all shows every setting")
        return
    headings = ["=Setting", "=Value", "=Source", *(["=Meaning"] if docs else [])]
    rows = [
        (
            each.name,
            "(hidden)" if each.is_sensitive else _text(each.value),
            source_name(each.config_source).lower().removesuffix("_config").replace("_", " ")
            + (" (read only)" if each.read_only else ""),
            *([each.documentation] if docs else []),
        )
        for each in configs
    ]
    print_table(str(resource), headings, rows)


def _as_json(resource: Resource, configs: Configs) -> dict[str, object]:
    return {
        "type": resource.type.name.lower(),
        "name": resource.name,
        "configs": [
            {
                "name": each.name,
                "value": each.value,
                "source": source_name(each.config_source),
                "readOnly": each.read_only,
                "sensitive": each.is_sensitive,
                "synonyms": [
                    {"name": one.name, "value": one.value, "source": source_name(one.source)} for one in each.synonyms
                ],
                **({"documentation": each.documentation} if each.documentation is not None else {}),
            }
            for each in configs
        ],
    }
