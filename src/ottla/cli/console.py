"""`ottla console`: a web console for clusters, Ottla's or Apache Kafka's."""

from __future__ import annotations

import asyncio
import importlib.util
import secrets
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import print_json, say, warn
from ottla.cli.common.references import resolved
from ottla.cli.common.settings import ClientSettings, build_settings, read_properties
from ottla.cli.node.companions import LISTEN_FD, PORTS_AFTER, listen, taken_over, until_parent_ends, url_of
from ottla.errors import OttlaError

PORT = 8080
PACKAGES = ("uvicorn", "starlette", "jinja2")
LOOPBACK = ("localhost", "127.0.0.1", "::1")

EPILOG = """\b
Examples:
  ottla console                                       for the cluster at localhost:9092, on http://127.0.0.1:8080
  ottla console -b kafka-1:9092 --allow-changes       for a cluster elsewhere, and with buttons that change it
  ottla console -b kafka-1:9092 -b localhost:9092     two clusters
  ottla console --cluster prod=kafka:9092 --cluster test=localhost:9092
  ottla console -b kafka-1:9093 --command-config client.properties      with TLS and a login
  ottla console --schema-registry http://localhost:8081 --pipeline http://127.0.0.1:9464
  ottla console --config console.yaml                 clusters, logins, roles, masking from a file
\b
console.yaml:
  clusters:
    - {name: prod, bootstrap.servers: "kafka-1:9092", command-config: prod.properties, read-only: true}
    - {name: test, bootstrap.servers: "localhost:9092", schema-registry: "http://localhost:8081"}
  login: {header: X-Forwarded-User, groups-header: X-Forwarded-Groups, trusted: [127.0.0.1], editors: [kafka-admins]}
  masking:
    - {topics: "orders*", path: $.customer.email, how: hash}
  audit-topic: console-audit
"""


@click.command("console", epilog=EPILOG)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port to listen on; 0 chooses a free one.  [default: {PORT}, or the next free one]",
)
@click.option(
    "--allow-changes", is_flag=True, help="Topics, offsets, settings can be changed. Without, the console only shows."
)
@click.option("--read-only", is_flag=True, help="Nothing can be changed, whatever the file of --config says.")
@click.option("--name", default="", help="What the cluster is called on pages.  [default: its address]")
@click.option("--cluster", "more", multiple=True, metavar="NAME=HOST:PORT", help="Another cluster. Repeatable.")
@click.option("--config", "config_path", metavar="FILE", help="A YAML file with clusters, logins, roles, masking; see below.")
@click.option(
    "--allowed-host", "hosts", multiple=True, metavar="NAME", help="A name that browsers may call the console by. Repeatable."
)
@click.option("--schema-registry", "registry_url", metavar="URL", help="Show records written with its schemas.")
@click.option("--pipeline", "pipelines", multiple=True, metavar="URL", help="A run's --metrics-port, to show. Repeatable.")
@click.option("--sql", "runs_sql", is_flag=True, help="Run SQL statements for users, on Spark beside the console.")
@click.option("--audit-topic", metavar="NAME", help="Write who changed what to this topic of the first cluster.")
@click.option("--json", "as_json", is_flag=True, help="When ready, print one JSON line with the address, for programs.")
@click.option(LISTEN_FD, "descriptor", type=int, hidden=True, help="Serve on this open socket; end with standard input.")
@cluster_options(several=True)
def console(
    settings: ClientSettings,
    servers: tuple[str, ...],
    host: str,
    port: int | None,
    allow_changes: bool,
    read_only: bool,
    name: str,
    more: tuple[str, ...],
    config_path: str | None,
    hosts: tuple[str, ...],
    registry_url: str | None,
    pipelines: tuple[str, ...],
    runs_sql: bool,
    audit_topic: str | None,
    as_json: bool,
    descriptor: int | None,
) -> None:
    """Look into clusters with a browser, until Ctrl-C."""
    if missing := missing_packages(with_yaml=config_path is not None):
        raise OttlaError(f"the console needs the packages {', '.join(missing)}: pip install 'ottla[console]'")
    from ottla.cli.logs import configure_logging
    from ottla.console.access import Everybody
    from ottla.console.app import ConsoleSettings
    from ottla.console.config import BadConfig, ConsoleConfig, read_config
    from ottla.console.masking import Masking
    from ottla.console.server import serve

    configure_logging(level="WARNING")
    try:
        config = ConsoleConfig() if config_path is None else read_config(Path(config_path), resolved)
    except BadConfig as mistake:
        raise click.UsageError(str(mistake)) from None
    clusters: dict[str, ClientSettings] = {}
    if servers or more or not config.clusters:
        clusters = _named(settings, servers, name, more)
    for entry in config.clusters:
        if entry.name in clusters:
            raise click.UsageError(f"{config_path}, line {entry.line}: there are two clusters {entry.name}: give them names")
        clusters[entry.name] = _of_file(Path(config_path or ""), entry.command_config, entry.properties)
    known = {*hosts, *config.hosts}
    allowed = (
        frozenset({*LOOPBACK, host.lower(), *(each.lower() for each in known)}) if host in LOOPBACK or known else frozenset()
    )
    changes = not read_only and (allow_changes or bool(config.allows_changes))
    options = ConsoleSettings(
        allowed,
        changes,
        registry_url,
        registries={each.name: each.registry for each in config.clusters if each.registry is not None},
        read_only=frozenset(each.name for each in config.clusters if each.is_read_only),
        access=config.access or Everybody(),
        masking=Masking(config.rules, secrets.token_bytes(32)),
        audit_topic=audit_topic or config.audit_topic,
        runs_sql=not read_only and (runs_sql or config.runs_sql),
        properties={each: found.properties for each, found in clusters.items()},
        pipelines=(*pipelines, *config.pipelines),
    )
    if options.access.__class__ is Everybody and (changes or options.runs_sql) and host not in LOOPBACK:
        warn(f"everybody who reaches {host} may change things: set up a login (--config), or listen on 127.0.0.1")
    admins = {each: found.client for each, found in clusters.items()}
    if descriptor is not None:

        async def serve_for_parent() -> None:
            await serve(admins, options, taken_over(descriptor), lambda: None, until=until_parent_ends())

        asyncio.run(serve_for_parent())
        return
    listener: socket.socket = listen(host, PORT if port is None else port, or_next=PORTS_AFTER if port is None else 0)
    url = url_of(listener)

    def ready() -> None:
        if as_json:
            print_json({"url": url})
        else:
            say(f"console: {url}   ({', '.join(clusters)}{'' if changes else '; read-only'})")

    # The server raises the signal once more when it has ended: by default that kills the process before its jobs are ended.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    asyncio.run(serve(admins, options, listener, ready))


def _named(settings: ClientSettings, servers: tuple[str, ...], name: str, more: tuple[str, ...]) -> dict[str, ClientSettings]:
    """The clusters of flags, by name."""
    clusters = {name or settings.properties["bootstrap.servers"].partition(",")[0]: settings}
    given = [(each.partition(",")[0], each, f"-b {each}") for each in servers[1:]]
    for each in more:
        other, equals, address = each.partition("=")
        if not equals:
            raise click.UsageError(f"--cluster {each}: write NAME=HOST:PORT")
        given.append((other, address, f"--cluster {each}"))
    for other, address, flag in given:
        if other in clusters:
            raise click.UsageError(f"{flag}: there are two clusters {other}; give them names with --cluster NAME=HOST:PORT")
        clusters[other] = settings.changed({"bootstrap.servers": address})
    return clusters


def _of_file(config: Path, command_config: str | None, properties: Mapping[str, str]) -> ClientSettings:
    """The settings of a cluster in the file: those that it names, over those of its properties file."""
    found = {} if command_config is None else read_properties(str(config.parent / command_config))
    return build_settings(None, found | resolved(properties))


def missing_packages(*, with_yaml: bool = False) -> list[str]:
    """The packages of the extra that are not installed."""
    return [name for name in (*PACKAGES, *(("yaml",) if with_yaml else ())) if importlib.util.find_spec(name) is None]
