"""`ottla configs describe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.configs.entities import Entity, entity_arguments, find_entity
from ottla.client.admin.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    describe_configs,
    list_config_resources,
)
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster

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
    ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigResourceType.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ConfigResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ConfigResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}

Configs = Sequence[ConfigEntry]
BROKER_DEFAULTS = ConfigResource(ConfigResourceType.BROKER, "")


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


async def _describe(cluster: Cluster, entity: Entity, show_all: bool, docs: bool) -> dict[ConfigResource, Configs]:
    resources = [entity.resource] if entity.name is not None else await _all_of(cluster, entity.type)
    described = await describe_configs(cluster, resources, include_synonyms=True, include_documentation=docs)
    own = dict.fromkeys(resources, OWN_SOURCES[entity.type]) | {BROKER_DEFAULTS: ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG}
    return {
        resource: [each for each in configs.values() if show_all or each.source is own[resource]]
        for resource, configs in described.raise_first().items()
    }


async def _all_of(cluster: Cluster, kind: ConfigResourceType) -> list[ConfigResource]:
    if kind is ConfigResourceType.TOPIC:
        return [ConfigResource(kind, name) for name in await list_topics(cluster, include_internal=True)]
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        await cluster.metadata([])
        brokers = [ConfigResource(kind, str(broker_id)) for broker_id in sorted(cluster.brokers)]
        return [*brokers, BROKER_DEFAULTS] if kind is ConfigResourceType.BROKER else brokers
    return await list_config_resources(cluster, [kind])


def _print_lines(resource: ConfigResource, configs: Configs, show_all: bool, docs: bool) -> None:
    """Kafka's own lines."""
    if resource == BROKER_DEFAULTS:
        say("Default configs for brokers in the cluster are:")
    else:
        kind = resource.type_name.replace("_", "-")
        say(f"{'All' if show_all else 'Dynamic'} configs for {kind} {resource.name} are:")
    for each in configs:
        synonyms = ", ".join(f"{one.source.name}:{one.name}={_text(one.value)}" for one in each.synonyms)
        sensitive = "true" if each.is_sensitive else "false"
        say(f"  {each.name}={_text(each.value)} sensitive={sensitive} synonyms={{{synonyms}}}")
        if docs and each.documentation:
            say(f"    {each.documentation}")


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _print_table(resource: ConfigResource, configs: Configs, docs: bool) -> None:
    if not configs:
        say(f"{resource}: nothing was set; --all shows every setting")
        return
    headings = ["=Setting", "=Value", "=Source", *(["=Meaning"] if docs else [])]
    rows = [
        (
            each.name,
            "(hidden)" if each.is_sensitive else _text(each.value),
            each.source.name.lower().removesuffix("_config").replace("_", " ") + (" (read only)" if each.is_read_only else ""),
            *([each.documentation] if docs else []),
        )
        for each in configs
    ]
    print_table(str(resource), headings, rows)


def _as_json(resource: ConfigResource, configs: Configs) -> dict[str, object]:
    return {
        "type": resource.type_name,
        "name": resource.name,
        "configs": [
            {
                "name": each.name,
                "value": each.value,
                "source": each.source.name,
                "readOnly": each.is_read_only,
                "sensitive": each.is_sensitive,
                "synonyms": [{"name": one.name, "value": one.value, "source": one.source.name} for one in each.synonyms],
                **({"documentation": each.documentation} if each.documentation is not None else {}),
            }
            for each in configs
        ],
    }
