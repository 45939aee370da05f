"""`ottla console`: a web console for clusters, Ottla's or Apache Kafka's."""

from __future__ import annotations

import asyncio
import importlib.util
import socket

import click

from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import print_json, say
from ottla.cli.common.settings import ClientSettings
from ottla.cli.node.companions import LISTEN_FD, PORTS_AFTER, listen, taken_over, until_parent_ends, url_of
from ottla.errors import OttlaError

PORT = 8080
PACKAGES = ("uvicorn", "starlette", "jinja2")
LOOPBACK = ("localhost", "127.0.0.1", "::1")

EPILOG = """\b
Examples:
  ottla console                                       for the cluster at localhost:9092, on http://127.0.0.1:8080
  ottla console -b kafka-1:9092 --allow-changes       for a cluster elsewhere, and with buttons that change it
  ottla console --cluster prod=kafka:9092 --cluster test=localhost:9092
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
@click.option("--name", default="", help="What the cluster is called on pages.  [default: its address]")
@click.option("--cluster", "more", multiple=True, metavar="NAME=HOST:PORT", help="Another cluster. Repeatable.")
@click.option(
    "--allowed-host", "hosts", multiple=True, metavar="NAME", help="A name that browsers may call the console by. Repeatable."
)
@click.option("--schema-registry", "registry_url", metavar="URL", help="Show records written with its schemas.")
@click.option("--json", "as_json", is_flag=True, help="When ready, print one JSON line with the address, for programs.")
@click.option(LISTEN_FD, "descriptor", type=int, hidden=True, help="Serve on this open socket; end with standard input.")
@cluster_options()
def console(
    settings: ClientSettings,
    host: str,
    port: int | None,
    allow_changes: bool,
    name: str,
    more: tuple[str, ...],
    hosts: tuple[str, ...],
    registry_url: str | None,
    as_json: bool,
    descriptor: int | None,
) -> None:
    """Look into clusters with a browser, until Ctrl-C."""
    if missing := missing_packages():
        raise OttlaError(f"the console needs the packages {', '.join(missing)}: pip install 'ottla[console]'")
    from ottla.cli.logs import configure_logging
    from ottla.console.app import ConsoleSettings
    from ottla.console.server import serve

    configure_logging(level="WARNING")
    clusters = {name or settings.properties["bootstrap.servers"].partition(",")[0]: settings.client}
    for each in more:
        other, equals, address = each.partition("=")
        if not equals:
            raise click.UsageError(f"--cluster {each}: write NAME=HOST:PORT")
        clusters[other] = settings.changed({"bootstrap.servers": address}).client
    allowed = (
        frozenset({*LOOPBACK, host.lower(), *(each.lower() for each in hosts)}) if host in LOOPBACK or hosts else frozenset()
    )
    options = ConsoleSettings(allowed, allow_changes, registry_url)
    if descriptor is not None:

        async def serve_for_parent() -> None:
            await serve(clusters, options, taken_over(descriptor), lambda: None, until=until_parent_ends())

        asyncio.run(serve_for_parent())
        return
    listener: socket.socket = listen(host, PORT if port is None else port, or_next=PORTS_AFTER if port is None else 0)
    url = url_of(listener)

    def ready() -> None:
        if as_json:
            print_json({"url": url})
        else:
            say(f"console: {url}   ({', '.join(clusters)}{'' if allow_changes else '; read-only'})")

    asyncio.run(serve(clusters, options, listener, ready))


def missing_packages() -> list[str]:
    """The packages of the extra that are not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]
