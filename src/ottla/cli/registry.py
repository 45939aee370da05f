"""`ottla registry`: a schema registry with Confluent's REST API in front of a cluster, Ottla's or Apache Kafka's."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import print_json, say
from ottla.cli.common.settings import ClientSettings
from ottla.cli.node.companions import LISTEN_FD, PORTS_AFTER, listen, taken_over, until_parent_ends, url_of
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.registry.group import Address

PORT = 8081
EVERYWHERE = ("0.0.0.0", "::")
PACKAGES = ("uvicorn", "starlette", "fastavro", "jsonschema", "referencing", "google.protobuf")

EPILOG = """\b
Examples:
  ottla registry                                      for the cluster at localhost:9092, on http://127.0.0.1:8081
  ottla registry -b kafka-1:9092 --host 0.0.0.0       for a cluster elsewhere, open to the network
  ottla registry --group schema-registry              beside Confluent's registries
  ottla registry --command-config client.properties   for a cluster with TLS and logins
  curl http://127.0.0.1:8081/subjects
"""


@click.command("registry", epilog=EPILOG)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port to listen on; 0 chooses a free one.  [default: {PORT}, or the next free one]",
)
@click.option(
    "--group",
    metavar="ID",
    help="Stand beside Confluent's registries, whose schema.registry.group.id this is (theirs by default: schema-registry): "
    "they elect one that writes, and the others forward writes to it.",
)
@click.option(
    "--advertised", metavar="URL", help="With --group: the address that the others forward to.  [default: the host's name]"
)
@click.option("--json", "as_json", is_flag=True, help="When ready, print one JSON line with the address, for programs.")
@click.option(LISTEN_FD, "descriptor", type=int, hidden=True, help="Serve on this open socket; end with standard input.")
@cluster_options()
def registry(
    settings: ClientSettings,
    host: str,
    port: int | None,
    group: str | None,
    advertised: str | None,
    as_json: bool,
    descriptor: int | None,
) -> None:
    """Keep schemas in the topic _schemas, and serve them as Confluent's Schema Registry does, until Ctrl-C.

    Several can run in front of one cluster: all of them take reads and writes.
    """
    require_packages()
    from ottla.cli.logs import configure_logging
    from ottla.registry.server import serve

    configure_logging(level="WARNING")
    if descriptor is not None:
        asyncio.run(_serve_for_parent(settings, taken_over(descriptor)))
        return
    listener = listen(host, PORT if port is None else port, or_next=PORTS_AFTER if port is None else 0)
    url = url_of(listener)
    member = None if group is None else (group, _address(advertised, host, listener.getsockname()[1]))

    def ready() -> None:
        if as_json:
            print_json({"url": url})
        else:
            say(f"schema registry: {url}   (schemas in the topic _schemas of {settings.properties['bootstrap.servers']})")

    asyncio.run(serve(settings.client, listener, ready, group=member))


def _address(advertised: str | None, host: str, port: int) -> Address:
    """Where the others of a group find this registry."""
    from ottla.registry.group import Address

    if advertised is None:
        return Address("http", socket.getfqdn() if host in EVERYWHERE else host, port)
    parts = urlsplit(advertised)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.UsageError(f"--advertised {advertised}: write http://HOST:PORT")
    return Address(parts.scheme, parts.hostname, parts.port or port)


async def _serve_for_parent(settings: ClientSettings, listener: socket.socket) -> None:
    from ottla.registry.server import serve

    await serve(settings.client, listener, lambda: None, until=until_parent_ends())


def require_packages() -> None:
    """Refuse to go on without the packages of the extra."""
    if missing := missing_packages():
        raise OttlaError(f"the schema registry needs the packages {', '.join(missing)}: pip install 'ottla[registry]'")


def missing_packages() -> list[str]:
    """The packages of the extra that are not installed."""
    missing = []
    for name in PACKAGES:
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            missing.append("protobuf" if name == "google.protobuf" else name)
    return missing
