"""Arguments that name a resource: `topic orders`, Kafka's `--entity-type topics --entity-name orders` or `--topic orders`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_topics, complete_words
from ottla.client.admin.configs import ConfigResource, ConfigResourceType

F = TypeVar("F", bound=Callable[..., Any])

KINDS = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "broker-logger": ConfigResourceType.BROKER_LOGGER,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
    "group": ConfigResourceType.GROUP,
}
PLURALS = {"topics": "topic", "brokers": "broker", "broker-loggers": "broker-logger", "groups": "group"}
LATER = {"user": "users", "client": "clients", "ip": "ips"}
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
    kinds = (ctx.params.get("type_"), ctx.params.get("entity_type"))
    return complete_topics(ctx, param, incomplete) if {"topic", "topics"} & {*kinds} else []


def complete_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of settings of the kind that the line names: topics' or brokers'. An equals sign follows where a value does."""
    # With a flag that still lacks its value, click leaves positional arguments in ctx.args.
    kind = ctx.params.get("type_") or ctx.params.get("entity_type") or next(iter(ctx.args), "")
    is_of_broker = str(kind).startswith("broker")
    is_of_broker = is_of_broker or bool(ctx.params.get("broker") or ctx.params.get("broker_defaults"))
    sign = "=" if param.name in ("to_set", "add_config") else ""
    done, comma, rest = incomplete.rpartition(",")
    from ottla.config.broker_keys import BROKER_KEYS  # late: only completion needs the tables
    from ottla.config.topic_keys import TOPIC_KEYS

    table = BROKER_KEYS if is_of_broker else TOPIC_KEYS
    return [f"{done}{comma}{name}{sign}" for name in sorted(table) if name.startswith(rest)]


def entity_arguments(function: F) -> F:
    """Add all arguments and flags that name a resource; the function gets them as `**arguments`, for `find_entity`."""
    for name in (*LATER, *(f"{kind}-defaults" for kind in LATER)):
        function = click.option(f"--{name}", hidden=True, default=None, is_flag=name.endswith("defaults"))(function)
    for name in NAME_FLAGS:
        function = click.option(
            f"--{name}",
            metavar="NAME",
            help=f"Short for --entity-type {name} --entity-name NAME.",
            shell_complete=complete_topics if name == "topic" else None,
        )(function)
    options = (
        click.option("--broker-defaults", is_flag=True, help="The defaults of all brokers."),
        click.option("--entity-default", is_flag=True, help="The defaults of the entity type (brokers)."),
        click.option("--entity-name", metavar="NAME", help="Kafka's spelling of NAME.", shell_complete=_complete_names),
        click.option(
            "--entity-type",
            metavar="TYPE",
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
    entity_type, entity_name = arguments.pop("entity_type"), arguments.pop("entity_name")
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
    for flag in (*LATER, *(f"{kind}-defaults" for kind in LATER)):
        if arguments.pop(flag.replace("-", "_")):
            _kind(flag.removesuffix("-defaults"))
    if len(given) != 1:
        raise click.UsageError("name one resource: `topic orders`, `broker 1`, or --entity-type topics --entity-name orders")
    kind, chosen = given[0]
    if chosen == "" and kind != "broker":
        raise click.UsageError(f"there are no defaults for all {kind}s: only brokers have them")
    if kind in ("broker", "broker-logger") and chosen and not chosen.isdigit():
        raise click.UsageError(f"a broker is named by its id, a whole number, not {chosen!r}")
    return Entity(kind, chosen)


def _kind(text: str) -> str:
    kind = PLURALS.get(text, text)
    if kind in KINDS:
        return kind
    if kind in LATER or kind in LATER.values():
        raise click.UsageError(
            f"settings of {LATER.get(kind, kind)} are quotas and SCRAM credentials, which are not supported yet"
        )
    raise click.UsageError(f"{text} have no settings: choose one of {', '.join((*KINDS, 'broker-defaults'))}")
