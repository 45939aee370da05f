"""Flags that verbs share, as decorators: cluster address, output format, and flags that Kafka has removed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.common.output import WIDE
from ottla.cli.common.references import resolved
from ottla.cli.common.settings import (
    ADDRESSES,
    CONFIG_VARIABLE,
    DEFAULT_BOOTSTRAP,
    ENVIRONMENT_VARIABLE,
    build_settings,
    parse_pairs,
    read_properties,
)

F = TypeVar("F", bound=Callable[..., Any])

ZOOKEEPER = "Kafka 4 has no ZooKeeper: give the address of a broker with --bootstrap-server HOST:PORT"
BROKER_LIST = "it has been renamed: use --bootstrap-server HOST:PORT"


def retired(flag: str, successor: str, takes_value: bool = True) -> Callable[[F], F]:
    """A flag that Kafka has removed: using it is an error that names `successor`."""
    return refused(flag, f"{flag} is gone; {successor}", takes_value)


def refused(flag: str, sentence: str, takes_value: bool = True) -> Callable[[F], F]:
    """A flag that people try: using it is an error that says what to do instead. Help and suggestions leave it out."""

    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value is not None and value is not False and not ctx.resilient_parsing:
            raise click.UsageError(sentence)

    # The value is optional, so that the flag without one gets the same error.
    extra: dict[str, Any] = {"is_flag": False, "flag_value": "given"} if takes_value else {"is_flag": True}
    return click.option(flag, hidden=True, expose_value=False, is_eager=True, callback=refuse, **extra)


def cluster_options(
    *,
    known: frozenset[str] = frozenset(),
    old_config_flag: str = "",
    property_flags: tuple[str, ...] = (),
    retire_broker_list: bool = True,
    takes_controllers: bool = False,
    several: bool = False,
) -> Callable[[F], F]:
    """Add the flags for the cluster's address and client settings; the function gets `settings` instead of them.

    With `several` the address may be given more than once: the function gets all of them as `servers`, the first as `settings`.
    With `takes_controllers` the command can ask controllers directly, by --bootstrap-controller.
    `known` names the client properties that the verb itself reads. `old_config_flag` is the stem of Kafka's older names for the
    same flags: `--producer.config`, `--producer-property`. `property_flags` are further names of --command-property.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(
            *args: Any,
            bootstrap_server: str | tuple[str, ...] | None,
            command_config: str | None,
            command_property: tuple[str, ...],
            bootstrap_controller: str | None = None,
            **rest: Any,
        ) -> Any:
            if several:
                rest["servers"] = bootstrap_server or ()
            if isinstance(bootstrap_server, tuple):
                bootstrap_server = bootstrap_server[0] if bootstrap_server else None
            command_config = command_config or os.environ.get(CONFIG_VARIABLE)
            properties = read_properties(command_config) if command_config else {}
            if bootstrap_server is not None or bootstrap_controller is not None:
                for name in ADDRESSES:
                    properties.pop(name, None)
            properties |= resolved(parse_pairs(command_property, "--command-property"))
            if bootstrap_controller is not None:
                if bootstrap_server is not None:
                    raise click.UsageError("--bootstrap-server and --bootstrap-controller exclude each other: choose one")
                properties["bootstrap.controllers"] = bootstrap_controller
            return function(*args, settings=build_settings(bootstrap_server, properties, known), **rest)

        config_names = ["--command-config", *([f"--{old_config_flag}.config"] if old_config_flag else [])]
        property_names = [
            "--command-property",
            *([f"--{old_config_flag}-property"] if old_config_flag else []),
            *property_flags,
        ]
        decorated: Any = wrapper
        decorated = retired("--zookeeper", ZOOKEEPER)(decorated)
        if retire_broker_list:
            decorated = retired("--broker-list", BROKER_LIST)(decorated)
        decorated = click.option(
            *property_names,
            "command_property",
            multiple=True,
            metavar="KEY=VALUE",
            help="A client setting by its Kafka name, such as client.id=me; overrides the file. "
            "Each setting has an environment variable, too, "
            "such as OTTLA_SECURITY_PROTOCOL and OTTLA_SASL_MECHANISM; OTTLA_SASL_USERNAME and OTTLA_SASL_PASSWORD log in.",
        )(decorated)
        decorated = click.option(
            *config_names,
            "command_config",
            metavar="FILE",
            help=f"A properties file with client settings, such as those of TLS and SASL.  [default: ${CONFIG_VARIABLE}]",
        )(decorated)
        if takes_controllers:
            decorated = click.option(
                "--bootstrap-controller",
                metavar="HOST:PORT,…",
                help="Ask the controllers at these addresses, instead of brokers.",
            )(decorated)
        return click.option(  # type: ignore[no-any-return]  # click's decorators return the function they decorate
            "-b",
            "--bootstrap-server",
            "bootstrap_server",
            metavar="HOST:PORT,…",
            multiple=several,
            help=f"Where to find the cluster{'; again for each further one' if several else ''}.  "
            f"[default: ${ENVIRONMENT_VARIABLE}, or {DEFAULT_BOOTSTRAP}]",
        )(decorated)

    return decorate


def _mark_wide(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[WIDE] = True


json_option = click.option("--json", "as_json", is_flag=True, help="JSON, for programs.")
plain_option = click.option("--plain", is_flag=True, help="Kafka's own lines, also on a terminal (pipes get them anyway).")
wide_option = click.option(
    "--wide",
    is_flag=True,
    expose_value=False,
    callback=_mark_wide,
    help="On a terminal, show all columns in full, however long the lines.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
