"""The `quotas` verb: limits for users, client ids and addresses. `ottla configs` in Kafka's spelling ends here too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.settings import ClientSettings, parse_pairs
from ottla.cli.common.spelling import Actions, did_you_mean
from ottla.client.admin.quotas import (
    ANY_ENTITY,
    DEFAULT_ENTITY,
    QuotaEntity,
    alter_client_quotas,
    describe_client_quotas,
)
from ottla.errors import OttlaError

F = TypeVar("F", bound=Callable[..., Any])

SHORT: Final = {
    "produce": "producer_byte_rate",
    "consume": "consumer_byte_rate",
    "requests": "request_percentage",
    "mutations": "controller_mutation_rate",
    "connections": "connection_creation_rate",
}
"""Our word → Kafka's key."""
_MEANINGS: Final = {
    "producer_byte_rate": "bytes per second produced, per broker",
    "consumer_byte_rate": "bytes per second fetched, per broker",
    "request_percentage": "time of request handling, in percent of one thread, per broker",
    "controller_mutation_rate": "partitions created, added and deleted per second",
    "connection_creation_rate": "new connections per second, per broker",
}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(k|m|g|ki|mi|gi)?(?:b)?(?:/s)?%?", re.IGNORECASE)
_FACTORS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def entity_options(function: F) -> F:
    """Flags that name whose quota it is; the function gets `entity`: a `QuotaEntity`."""

    def wrapper(*args: Any, **rest: Any) -> Any:
        return function(*args, entity=_entity(rest), **rest)

    wrapper.__doc__, wrapper.__name__ = function.__doc__, function.__name__
    wrapper.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # click keeps options there
    decorated: Any = wrapper
    for name, what in (("ip", "address"), ("client", "client id"), ("user", "user")):
        every = f"The quota of every {what} without its own."
        decorated = click.option(f"--{name}-defaults", is_flag=True, help=every)(decorated)
        decorated = click.option(f"--{name}", metavar="NAME", help=f"The quota of this {what}.")(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return the function they decorate


def _entity(options: dict[str, Any]) -> QuotaEntity:
    names: list[str | None] = []
    for kind in ("user", "client", "ip"):
        name, is_default = options.pop(kind), options.pop(f"{kind}_defaults")
        if name is not None and is_default:
            raise click.UsageError(f"--{kind} and --{kind}-defaults exclude each other: choose one")
        names.append(DEFAULT_ENTITY if is_default else name)
    return QuotaEntity(*names)


def _needed(entity: QuotaEntity) -> QuotaEntity:
    if not any(entity):
        raise click.UsageError("say whose quota: --user alice, --client app, both, --user-defaults, or --ip 10.0.0.7")
    return entity


def _key(text: str) -> str:
    key = SHORT.get(text, text)
    if key not in _MEANINGS:
        hint = did_you_mean(text, [*SHORT, *_MEANINGS]) or f"choose from {', '.join(SHORT)}"
        raise click.UsageError(f"{text} is no quota: {hint}")
    return key


def parse_value(text: str) -> float:
    """`10MB`, `512KiB/s`, `12.5%` or a number."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise click.UsageError(f"{text!r} is no limit: write a number, such as 1048576, 10MB or 12.5")
    return float(match[1]) * _FACTORS[(match[2] or "").lower()]


def change(
    settings: ClientSettings, entity: QuotaEntity, changes: Mapping[str, float | None], validate_only: bool = False
) -> None:
    """Set the limits with a number, remove those with None."""
    with_cluster(
        settings, lambda cluster: alter_client_quotas(cluster, {entity: changes}, validate_only=validate_only)
    ).raise_first()


SET_EXAMPLES = """\b
Examples:
  ottla quotas set --user alice produce=10MB consume=20MB
  ottla quotas set --user alice --client app requests=50        half a thread
  ottla quotas set --user-defaults produce=1MB                  each user without a quota
  ottla quotas set --ip 10.0.0.7 connections=5
\b
Quotas:
  produce      producer_byte_rate         bytes per second, per broker
  consume      consumer_byte_rate         bytes per second, per broker
  requests     request_percentage         100 is one thread all the time, per broker
  mutations    controller_mutation_rate   partitions created, added and deleted per second
  connections  connection_creation_rate   new connections per second, per broker; of --ip
"""


@click.command("set", epilog=SET_EXAMPLES)
@click.argument("limits", nargs=-1, metavar="QUOTA=LIMIT...", required=True)
@entity_options
@json_option
@cluster_options()
def set_command(settings: ClientSettings, limits: tuple[str, ...], entity: QuotaEntity, as_json: bool) -> None:
    """Set limits of a user, a client id, both together, or an address."""
    changes = {_key(name): parse_value(value) for name, value in parse_pairs(limits, "set").items()}
    change(settings, _needed(entity), changes)
    if as_json:
        print_json({"entity": as_json_entity(entity), "set": changes})
    for key, value in {} if as_json else changes.items():
        say(f"{text_of(entity)}: {key} is {value:.15g} ({_MEANINGS[key]})")


@click.command("remove")
@click.argument("names", nargs=-1, metavar="[QUOTAS]...")
@click.option("--all", "is_all", is_flag=True, help="All quotas of the entity.")
@entity_options
@json_option
@cluster_options()
def remove(settings: ClientSettings, names: tuple[str, ...], is_all: bool, entity: QuotaEntity, as_json: bool) -> None:
    """Remove limits of a user, a client id, both together, or an address: those named, or with --all every one."""
    _needed(entity)
    if is_all == bool(names):
        raise click.UsageError("say which quotas: produce, consume, requests, mutations, connections; or --all")
    keys = [_key(each) for each in names]
    if is_all:
        keys = list(_find(settings, entity, is_strict=True).get(entity, {}))
        if not keys:
            raise OttlaError(f"{text_of(entity)} has no quota: nothing was removed")
    change(settings, entity, dict.fromkeys(keys))
    if as_json:
        print_json({"entity": as_json_entity(entity), "removed": keys})
    else:
        say(f"{text_of(entity)}: removed {', '.join(keys)}")


@click.command("list")
@entity_options
@json_option
@plain_option
@wide_option
@cluster_options()
def list_command(settings: ClientSettings, entity: QuotaEntity, as_json: bool, plain: bool) -> None:
    """List the limits: all, or those of a user, a client id or an address. --user '*' means every user."""
    show(_find(settings, entity, is_strict=False), as_json, plain)


def _find(settings: ClientSettings, entity: QuotaEntity, is_strict: bool) -> dict[QuotaEntity, dict[str, float]]:
    parts = entity._asdict()
    return with_cluster(settings, lambda cluster: describe_client_quotas(cluster, **parts, strict=is_strict))


# `ottla configs`, in Kafka's spelling


def _entity_of(names: Mapping[str, str | None]) -> QuotaEntity:
    """The entity that `ottla configs` names: None is every one of the kind, "" the default."""
    said = {None: ANY_ENTITY, "": DEFAULT_ENTITY}
    return QuotaEntity(*(said.get(names[kind], names[kind]) if kind in names else None for kind in ("user", "client", "ip")))


def describe_in_lines(settings: ClientSettings, names: Mapping[str, str | None], as_json: bool, plain: bool) -> None:
    """Show the quotas of users, clients and addresses; of users alone their SCRAM credentials, too."""
    show(_find(settings, _entity_of(names), is_strict=True), as_json, plain, is_silent="user" in names)
    if set(names) == {"user"} and names["user"] != "" and not as_json:
        from ottla.cli.users import show as show_users  # late: few commands get here

        show_users(settings, None if names["user"] is None else [names["user"]], as_json, plain, is_silent=True)


def alter_in_kafkas_spelling(
    settings: ClientSettings,
    names: Mapping[str, str | None],
    added: Mapping[str, str],
    removed: Sequence[str],
    validate_only: bool,
    as_json: bool,
) -> None:
    """Change quotas, and SCRAM credentials of a user, as kafka-configs does."""
    if None in names.values():
        raise click.UsageError("name whose quotas to change: --entity-name NAME, or --entity-default")
    entity, mechanisms = _entity_of(names), [each for each in (*added, *removed) if each.startswith("SCRAM-")]
    if mechanisms:
        from ottla.cli.users import alter_in_kafkas_spelling as alter_user  # late: few commands get here

        if set(names) != {"user"} or not names["user"] or len(mechanisms) < len(added) + len(removed):
            raise click.UsageError("SCRAM credentials are changed apart from quotas, and of one user")
        alter_user(settings, names["user"], added, removed)
    else:
        changes: dict[str, float | None] = {_key(name): parse_value(value) for name, value in added.items()}
        changes |= dict.fromkeys(map(_key, removed))
        change(settings, entity, changes, validate_only)
    if as_json:
        print_json({"entity": as_json_entity(entity), "set": [*added], "unset": [*removed]})
    elif validate_only:
        say(f"The settings of {text_of(entity)} could be changed.")
    else:
        say(f"Completed updating config for {_kafkas_text(entity)}.")


def show(found: Mapping[QuotaEntity, Mapping[str, float]], as_json: bool, plain: bool, is_silent: bool = False) -> None:
    """Print quotas. With `is_silent`, nothing is said of none."""
    if as_json:
        print_json([{"entity": as_json_entity(entity), "quotas": quotas} for entity, quotas in found.items()])
    elif not is_for_people(as_json, plain):
        for entity, quotas in found.items():
            values = ", ".join(f"{key}={_javas_text(value)}" for key, value in quotas.items())
            say(f"Quota configs for {_kafkas_text(entity)} are {values}")
    elif found:
        rows = [
            (text_of(entity), key, f"{value:.15g}", _MEANINGS.get(key, ""))
            for entity, quotas in sorted(found.items(), key=lambda item: [part or "" for part in item[0]])
            for key, value in sorted(quotas.items())
        ]
        print_table(None, ("Who", "Quota", "#Limit", "=Meaning"), rows)
    elif not is_silent:
        say("There are no quotas.")


def text_of(entity: QuotaEntity) -> str:
    """`user alice, client app`."""
    said = {DEFAULT_ENTITY: "every other {}", ANY_ENTITY: "any {}"}
    parts = zip(("user", "client", "address"), entity, strict=True)
    return ", ".join(said.get(name, f"{{}} {name}").format(kind) for kind, name in parts if name)


def _javas_text(value: float) -> str:
    """A number as Java prints it: 1.0E7 from ten million on."""
    if 1e-3 <= value < 1e7:
        return repr(value)
    for count in range(1, 17):
        digits, _, power = f"{value:.{count}e}".partition("e")
        if float(f"{digits}e{power}") == value:
            break
    return f"{digits}E{int(power)}"


def _kafkas_text(entity: QuotaEntity) -> str:
    kinds = (("user", "user-principal"), ("client_id", "client-id"), ("ip", "ip"))
    names = entity._asdict()
    return ", ".join(
        f"the default {kind}" if names[field] == DEFAULT_ENTITY else f"{kind} '{names[field]}'"
        for field, kind in kinds
        if names[field] is not None
    )


def as_json_entity(entity: QuotaEntity) -> dict[str, str | None]:
    """The default is null, as in Kafka's protocol."""
    return {
        field.replace("_", "-"): None if name == DEFAULT_ENTITY else name
        for field, name in entity._asdict().items()
        if name is not None
    }


ACTIONS = {
    "set": ("ottla.cli.quotas", "set_command", "Set limits."),
    "remove": ("ottla.cli.quotas", "remove", "Remove limits."),
    "list": ("ottla.cli.quotas", "list_command", "List limits."),
}

EXAMPLES = """\b
Examples:
  ottla quotas set --user alice produce=10MB
  ottla quotas list
  ottla quotas remove --user alice produce
"""


@click.command("quotas", cls=Actions, actions=ACTIONS, aliases={"--describe": "--list", "describe": "list"}, epilog=EXAMPLES)
def quotas() -> None:
    """Limits for clients: bytes per second, request time, changes, connections.

    Kafka sets them with kafka-configs: `ottla configs alter --entity-type users …` works too.
    """
