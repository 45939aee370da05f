"""`ottla up`: runs a node, or a cluster of several, with sane defaults in the foreground. Formats new directories."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.broker.secure_settings import secured
from ottla.broker.solo_settings import solo_settings
from ottla.cli.common.output import escape, print_json
from ottla.cli.common.references import refuse_plain_secrets, resolved
from ottla.cli.common.spelling import Commands

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.secure_settings import NodeSecurity
    from ottla.cli.node.companions import Companions

EPILOG = """\b
Examples:
  ottla up                                  listen on 127.0.0.1:9092, keep data in ./ottla-data
  ottla up --port 0 --data /tmp/try         any free port, another folder
  ottla up --set num.partitions=6           any setting of Kafka's server.properties
  ottla up --set 'ssl.key.password=${env:PW}'     a secret, kept out of the list of processes
  ottla up --nodes 3                        a cluster on ports 9092, 9093, 9094, data in ./ottla-data/node-N
  ottla up --secure                         TLS, users and access control; prints the settings for clients
  ottla up status                           from another terminal: what runs; also stop, stop 2, start 2, restart 2, add
"""

DEFAULT_ADDRESSES = ("127.0.0.1:9092", "localhost:9092")
"""Spellings of the address that commands use by default."""


SECURITY_FOLDER = "security"
"""In the data folder: what --secure has made. See `secure.py`."""

_CONSOLE = (
    "`ottla up` serves a console where it says, unless --no-console is given; `ottla console --port` serves one elsewhere"
)
_REGISTRY = (
    "`ottla up` serves a registry where it says, unless --no-registry is given; `ottla registry --port` serves one elsewhere"
)
OF_SERVER = {
    "ottla.console.host": _CONSOLE,
    "ottla.console.port": _CONSOLE,
    "ottla.schema.registry.host": _REGISTRY,
    "ottla.schema.registry.port": _REGISTRY,
}

ACTIONS = {
    "status": "Show the nodes that run.",
    "stop": "Stop one node, or all.",
    "start": "Start a node that was stopped.",
    "restart": "Stop a node and start it again.",
    "add": "Add a broker to the cluster.",
}
"""Actions on an `ottla up` that runs in another terminal. Imported when used."""


class Up(Commands):
    """`ottla up` runs a node; with an action it talks to one that runs."""

    kind = "actions"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ACTIONS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ACTIONS:
            return None
        command = getattr(importlib.import_module("ottla.cli.node.up_actions"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Actions, from another terminal"):
            formatter.write_dl(list(ACTIONS.items()))


@click.command(cls=Up, invoke_without_command=True, epilog=EPILOG)
@click.pass_context
@click.option(
    "--port",
    default=9092,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 chooses a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on and to advertise.")
@click.option(
    "--data",
    default="ottla-data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The log directory; created and formatted if it does not exist.",
)
@click.option(
    "--nodes",
    default=1,
    show_default=True,
    type=click.IntRange(1, 9),
    help="How many nodes, on ports from --port on. Each is a process with broker and controller, which listens 10000 ports "
    "above. Topics get up to 3 replicas.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="TLS, a login with a password, and access control: makes certificates and a user `admin` in the data folder, and says "
    "which settings clients need. A folder made secure stays so.",
)
@click.option("--set", "overrides", multiple=True, metavar="NAME=VALUE", help="A setting of server.properties. Repeatable.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve Prometheus metrics here.")
@click.option("--log-dir", type=click.Path(file_okay=False, path_type=Path), help="Also write dated log files to this folder.")
@click.option("--quiet", "-q", is_flag=True, help="Print warnings and errors only.")
@click.option("--no-console", is_flag=True, help="Serve no web console beside the node.")
@click.option("--no-registry", is_flag=True, help="Serve no schema registry beside the node.")
@click.option("--json", "as_json", is_flag=True, help="When ready, print one JSON line with the address, for programs.")
def up(
    ctx: click.Context,
    port: int,
    host: str,
    data: Path,
    nodes: int,
    secure: bool,
    overrides: tuple[str, ...],
    metrics_port: int | None,
    log_dir: Path | None,
    quiet: bool,
    no_console: bool,
    no_registry: bool,
    as_json: bool,
) -> None:
    """Run one Kafka node in this process, or a cluster of several in processes of their own, until Ctrl-C."""
    if ctx.invoked_subcommand is not None:
        return
    refuse_plain_secrets("--set", overrides, "write ${env:NAME}, ${file:PATH:KEY} or ${directory:FOLDER:NAME} instead of it")
    given = parse_overrides(overrides)
    check_names(given)
    if nodes > 1:
        from ottla.cli.node.cluster import up_cluster

        level = "WARNING" if quiet or as_json else "INFO"
        up_cluster(
            host,
            port,
            nodes,
            data.resolve(),
            secure,
            given,
            metrics_port,
            log_dir,
            level,
            as_json,
            quiet,
            not no_console,
            not no_registry,
        )
        return
    gc.disable()  # until the node runs: imports create no garbage, but would trigger many collections
    from ottla.cli.logs import configure_logging
    from ottla.cli.node.companions import Companions, add_console, add_registry, registry_settings
    from ottla.cli.node.controlled_node import ControlledNode
    from ottla.cli.node.process import run_node

    data = data.resolve()
    security: NodeSecurity | None = None
    settings = solo_settings(host, port, str(data))
    if secure or (data / SECURITY_FOLDER).is_dir():
        from ottla.cli.node.secure import first_user, node_security

        security = node_security(data, host)
        settings = secured(solo_settings(host, port, f"{data}/node-1"), security)
    settings |= given
    if metrics_port is not None:
        settings["ottla.metrics.port"] = str(metrics_port)
    configure_logging(level="WARNING" if quiet or as_json else "INFO", directory=log_dir)

    def tell(node: Node) -> None:
        if as_json or not quiet:
            where = data if security is not None else Path(settings["log.dirs"].partition(",")[0])
            _tell(node, where, security is not None, as_json, companions)

    with ControlledNode(data) as controlled, Companions() as companions:
        if not no_registry:
            settings |= registry_settings(companions, host, settings)

        def on_ready(node: Node) -> None:
            login = None if security is None else data / SECURITY_FOLDER / "client.properties"
            if not no_registry:
                add_registry(companions, host, node.bootstrap_servers, login)
            if not no_console:
                add_console(companions, host, node.bootstrap_servers, login)
            controlled.open(node, lambda: tell(node))

        run_node(settings, on_ready, format_new=True, scram=() if security is None else (first_user(security),))


def check_names(settings: Mapping[str, str]) -> None:
    """Refuse names that no broker knows: a warning in the log is overlooked, and the setting would have no effect."""
    if settings:
        from ottla.config.notices import refusal_of_unknown  # late: a node without --set need not wait for its tables

        if (refusal := refusal_of_unknown(settings)) is not None:
            raise click.UsageError(f"--set: {refusal}")
        if (service := next((name for name in settings if name in OF_SERVER), None)) is not None:
            raise click.UsageError(f"--set {service}: this is for `ottla server start`. {OF_SERVER[service]}")


def parse_overrides(overrides: tuple[str, ...]) -> dict[str, str]:
    """Parse `NAME=VALUE` flags; a malformed one is a usage error."""
    settings: dict[str, str] = {}
    for override in overrides:
        name, separator, value = override.partition("=")
        if not separator or not name.strip():
            raise click.UsageError(f"--set {override}: write NAME=VALUE, such as --set num.partitions=6")
        settings[name.strip()] = value.strip()
    if any("${" in value for value in settings.values()):
        return resolved(settings)
    return settings


def _tell(node: Node, data: Path, is_secure: bool, as_json: bool, companions: Companions) -> None:
    address = node.bootstrap_servers
    config = data / SECURITY_FOLDER / "client.properties"
    if as_json:
        facts = {"bootstrap_servers": address, "cluster_id": node.cluster_id, "node_id": node.node_id, "data": str(data)}
        print_json(facts | companions.facts() | ({"client_properties": str(config)} if is_secure else {}))
        return
    where = "" if address in DEFAULT_ADDRESSES else f" --bootstrap-server {address}"
    who = ""
    if is_secure:
        where += f" --command-config {escape(str(config))}"
        who = f"\nTLS, users and access control are on. Clients need the settings in {escape(str(config))}: user admin.\n"
    click.echo(  # noqa: TID251  # several lines, and the names in them are escaped
        f"""
Ottla is up at {click.style(address, bold=True)} (cluster {node.cluster_id}, node {node.node_id}; data in {escape(str(data))})
{"".join(f"{line}{chr(10)}" for line in companions.lines())}{who}
Try next, in another terminal:
  ottla topics create greetings --partitions 3{where}
  echo hello | ottla produce greetings{where}
  ottla consume greetings --from-beginning{where}
or point any Kafka client at {address}. Ctrl-C stops it.
"""
    )
