"""The `configs` verb: shows and changes settings of topics, brokers and groups; quotas and SCRAM users, in Kafka's spelling.

A resource is named as `topic orders`, as Kafka's `--entity-type topics --entity-name orders`, or as `--topic orders`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_topics, complete_words
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import ZOOKEEPER, cluster_options, json_option, plain_option, retired, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.references import refuse_plain_secrets
from ottla.cli.common.settings import ClientSettings, parse_pairs, read_properties
from ottla.cli.common.spelling import Actions
from ottla.client.admin.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ResourceKey,
    alter_configs,
    describe_configs,
    list_config_resources,
)
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster
from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.topic_keys import TOPIC_KEYS
from ottla.config.values import parse_duration_ms

F = TypeVar("F", bound=Callable[..., Any])

KINDS = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "broker-logger": ConfigResourceType.BROKER_LOGGER,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
    "group": ConfigResourceType.GROUP,
}
PLURALS = {"topics": "topic", "brokers": "broker", "broker-loggers": "broker-logger", "groups": "group"}
QUOTA_KINDS = {"user": "users", "client": "clients", "ip": "ips"}
"""Kinds that have quotas and, users, SCRAM credentials: `ottla quotas` and `ottla users` change them too."""
NAME_FLAGS = ("topic", "broker", "broker-logger", "client-metrics", "group")


class Entity:
    """A kind of resource and a name. None means all of the kind, "" the defaults of all brokers."""

    def __init__(self, kind: str, name: str | None) -> None:
        self.kind = kind
        self.type = KINDS[kind]
        self.name = name

    @property
    def resource(self) -> ConfigResource:
        assert self.name is not None
        return ConfigResource(self.type, self.name)


def _complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of topics, if the kind is topic."""
    kinds = (ctx.params.get("type_"), *(ctx.params.get("entity_type") or ()))
    return complete_topics(ctx, param, incomplete) if {"topic", "topics"} & {*kinds} else []


def complete_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of settings of the kind that the line names: topics' or brokers'. An equals sign follows where a value does."""
    # With a flag that still lacks its value, click leaves positional arguments in ctx.args.
    kind = ctx.params.get("type_") or next(iter(ctx.params.get("entity_type") or ctx.args), "")
    is_of_broker = str(kind).startswith("broker")
    is_of_broker = is_of_broker or bool(ctx.params.get("broker") or ctx.params.get("broker_defaults"))
    sign = "=" if param.name in ("to_set", "add_config") else ""
    done, comma, rest = incomplete.rpartition(",")

    table = BROKER_KEYS if is_of_broker else TOPIC_KEYS
    return [f"{done}{comma}{name}{sign}" for name in sorted(table) if name.startswith(rest)]


def entity_arguments(function: F) -> F:
    """Add all arguments and flags that name a resource; the function gets them as `**arguments`, for `find_entity`."""
    for name in QUOTA_KINDS:
        function = click.option(f"--{name}-defaults", is_flag=True, hidden=True)(function)
        function = click.option(f"--{name}", metavar="NAME", hidden=True)(function)
    for name in NAME_FLAGS:
        function = click.option(
            f"--{name}",
            metavar="NAME",
            help=f"Short for --entity-type {name} --entity-name NAME.",
            shell_complete=complete_topics if name == "topic" else None,
        )(function)
    options = (
        click.option("--broker-defaults", is_flag=True, help="The defaults of all brokers."),
        click.option("--entity-default", is_flag=True, help="The defaults of the entity type."),
        click.option(
            "--entity-name", metavar="NAME", multiple=True, help="Kafka's spelling of NAME.", shell_complete=_complete_names
        ),
        click.option(
            "--entity-type",
            metavar="TYPE",
            multiple=True,
            help="Kafka's spelling of TYPE.",
            shell_complete=complete_words(*PLURALS, "client-metrics"),
        ),
        click.argument("name", required=False, shell_complete=_complete_names),
        click.argument("type_", metavar="[TYPE]", required=False, shell_complete=complete_words(*KINDS, "broker-defaults")),
    )
    for option in options:
        function = option(function)
    return function


def find_entity(arguments: dict[str, Any]) -> Entity:
    """The resource that the arguments and flags name. Removes them from `arguments`."""
    given: list[tuple[str, str | None]] = []
    type_, name = arguments.pop("type_"), arguments.pop("name")
    if type_ == "broker-defaults":
        given.append(("broker", ""))
    elif type_ is not None:
        given.append((_kind(type_), name))
    types, names = arguments.pop("entity_type"), arguments.pop("entity_name")
    if len(types) > 1 or len(names) > 1:
        raise click.UsageError("only users and clients can be named together: name one resource")
    entity_type, entity_name = next(iter(types), None), next(iter(names), None)
    entity_default = arguments.pop("entity_default")
    if entity_type is not None:
        given.append((_kind(entity_type), "" if entity_default else entity_name))
    elif entity_name is not None or entity_default:
        raise click.UsageError("--entity-name and --entity-default need an --entity-type")
    if arguments.pop("broker_defaults"):
        given.append(("broker", ""))
    for flag in NAME_FLAGS:
        value = arguments.pop(flag.replace("-", "_"))
        if value is not None:
            given.append((flag, value))
    if len(given) != 1:
        raise click.UsageError("name one resource: `topic orders`, `broker 1`, or --entity-type topics --entity-name orders")
    kind, chosen = given[0]
    if chosen == "" and kind != "broker":
        raise click.UsageError(f"there are no defaults for all {kind}s: only brokers have them")
    if kind in ("broker", "broker-logger") and chosen and not chosen.isdigit():
        raise click.UsageError(f"a broker is named by its id, a whole number, not {chosen!r}")
    return Entity(kind, chosen)


def find_quota_entity(arguments: dict[str, Any]) -> dict[str, str | None] | None:
    """The users, clients or addresses that the arguments name, by kind; None if they name something else.

    A name None means all of the kind, "" the default. Removes the flags of these kinds from `arguments`.
    """
    found: dict[str, str | None] = {}
    for kind in QUOTA_KINDS:
        name, is_default = arguments.pop(kind), arguments.pop(f"{kind}_defaults")
        if name is not None or is_default:
            found[kind] = "" if is_default else name
    singular = {plural: kind for kind, plural in QUOTA_KINDS.items()} | {kind: kind for kind in QUOTA_KINDS}
    types, names = list(arguments["entity_type"]), list(arguments["entity_name"])
    if arguments["type_"] in singular:
        found[singular[arguments["type_"]]] = arguments["name"]
    if any(each in singular for each in types):
        if unknown := [each for each in types if each not in singular]:
            raise click.UsageError(f"{unknown[0]} cannot be named together with users, clients or ips")
        is_default = arguments["entity_default"]
        if names and is_default and len(types) > 1:
            raise click.UsageError("name one and the default of the other like this: --user alice --client-defaults")
        if names and len(names) != len(types):
            raise click.UsageError("each --entity-type needs its --entity-name")
        found |= {singular[type_]: names[at] if names else "" if is_default else None for at, type_ in enumerate(types)}
    return found or None


def _kind(text: str) -> str:
    kind = PLURALS.get(text, text)
    if kind in KINDS:
        return kind
    raise click.UsageError(f"{text} have no settings: choose one of {', '.join((*KINDS, 'broker-defaults'))}")


DESCRIBE_EXAMPLES = """\b
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


@click.command("describe", epilog=DESCRIBE_EXAMPLES)
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
    if (of_quotas := find_quota_entity(arguments)) is not None:
        from ottla.cli.quotas import describe_in_lines  # late: few commands get here

        describe_in_lines(settings, of_quotas, as_json, plain)
        return
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


ALTER_EXAMPLES = """\b
Examples:
  ottla configs alter topic orders --set retention.ms=1d --unset segment.ms
  ottla configs alter topic orders --set cleanup.policy=compact,delete
  ottla configs alter broker 1 --set log.cleaner.threads=2
  ottla configs alter topic orders --add-config 'retention.ms=1,cleanup.policy=[compact,delete]'
"""

_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?=[^\]]*(?:\[|$))")


@click.command("alter", epilog=ALTER_EXAMPLES)
@entity_arguments
@click.option(
    "--set",
    "to_set",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_settings,
    help="Set a setting; times may be written 30s, 1h, 7d. Repeatable.",
)
@click.option(
    "--unset",
    "to_unset",
    multiple=True,
    metavar="KEY",
    shell_complete=complete_settings,
    help="Reset a setting to its default. Repeatable.",
)
@click.option(
    "--add-config", metavar="K=V,K=[V,V]", shell_complete=complete_settings, help="Kafka's spelling of --set, several at once."
)
@click.option("--add-config-file", metavar="FILE", help="The same from a properties file.")
@click.option(
    "--delete-config", metavar="K,K", shell_complete=complete_settings, help="Kafka's spelling of --unset, several at once."
)
@click.option("--validate-only", is_flag=True, help="Check the change without making it.")
@json_option
@cluster_options()
def alter(
    settings: ClientSettings,
    to_set: tuple[str, ...],
    to_unset: tuple[str, ...],
    add_config: str | None,
    add_config_file: str | None,
    delete_config: str | None,
    validate_only: bool,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Set and unset settings of topics, brokers, loggers and groups, all in one change.

    TYPE is topic, broker, broker-defaults, broker-logger, group or client-metrics.
    """
    of_quotas = find_quota_entity(arguments)
    entity = find_entity(arguments) if of_quotas is None else None
    if entity is not None and entity.name is None:
        raise click.UsageError(f"name the {entity.kind} whose settings to change")
    if add_config is not None and add_config_file is not None:
        raise click.UsageError("give --add-config or --add-config-file, not both")
    refuse_plain_secrets("--set", to_set, "put the setting into a file: --add-config-file FILE")
    added = parse_pairs(to_set, "--set")
    if add_config_file is not None:
        added |= read_properties(add_config_file)
    if add_config is not None:
        added |= parse_grouped_pairs(add_config)
    removed = [*to_unset, *(key.strip() for key in (delete_config or "").split(",") if key.strip())]
    both = sorted(set(added) & set(removed))
    if both:
        raise click.UsageError(f"{', '.join(both)} cannot be both set and unset")
    if not added and not removed:
        raise click.UsageError("say what to change: --set KEY=VALUE or --unset KEY (Kafka: --add-config, --delete-config)")
    if entity is None:
        from ottla.cli.quotas import alter_in_kafkas_spelling  # late: few commands get here

        assert of_quotas is not None
        alter_in_kafkas_spelling(settings, of_quotas, added, removed, validate_only, as_json)
        return
    added = in_milliseconds(added)
    resource = entity.resource
    changes: dict[ResourceKey, dict[str, str | None]] = {resource: {**added, **dict.fromkeys(removed)}}
    with_cluster(settings, lambda cluster: alter_configs(cluster, changes, validate_only=validate_only)).raise_first()
    if as_json:
        print_json({"type": resource.type_name, "name": resource.name, "set": added, "unset": removed})
    elif validate_only:
        say(f"The settings of {resource} could be changed.")
    elif resource.name:
        say(f"Completed updating config for {entity.kind} {resource.name}.")
    else:
        say("Completed updating default config for brokers in the cluster.")


def in_milliseconds(added: Mapping[str, str]) -> dict[str, str]:
    """The values as brokers read them: a duration such as 1h or 7d, for a setting in milliseconds, becomes its number."""
    found = {}
    for name, value in added.items():
        duration_ms = parse_duration_ms(value.strip()) if name.endswith(".ms") else None
        found[name] = value if duration_ms is None else str(duration_ms)
    return found


def parse_grouped_pairs(text: str) -> dict[str, str]:
    """Parse Kafka's `k1=v1,k2=[v1,v2]`: a value with commas is in brackets."""
    pairs = parse_pairs((part.strip() for part in _COMMA_OUTSIDE_BRACKETS.split(text)), "--add-config")
    return {key: value.strip().removeprefix("[").removesuffix("]") for key, value in pairs.items()}


EXAMPLES = """\b
Examples:
  ottla configs describe topic orders
  ottla configs describe broker 1 --all
  ottla configs alter topic orders --set retention.ms=86400000 --unset segment.ms
  ottla configs alter broker-defaults --set log.retention.ms=86400000
  ottla configs --alter --entity-type topics --entity-name orders --add-config retention.ms=86400000
                                                      Kafka's spelling
"""

ACTIONS = {
    "describe": ("ottla.cli.configs", "describe", "Show settings, where their values come from, and what they mean."),
    "alter": ("ottla.cli.configs", "alter", "Set and unset settings."),
}


@click.command("configs", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def configs() -> None:
    """Show and change settings of topics, brokers and groups.

    Takes the flags of Kafka's kafka-configs, too. The output is a table on a terminal, Kafka's lines in a pipe, JSON with
    --json. `ottla configs ACTION --help` shows the flags of an action.
    """
