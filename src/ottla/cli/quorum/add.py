"""`ottla quorum add`: makes an observer a voter."""

from __future__ import annotations

import re
from pathlib import Path

import click

from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings, read_properties
from ottla.cli.quorum.replicas import check_may_join, complete_observers, directory_of
from ottla.client.admin.cluster_state import describe_features
from ottla.client.admin.quorum import VoterEndpoint, add_raft_voter, describe_metadata_quorum
from ottla.client.cluster import Cluster
from ottla.ids import uuid_text

EXAMPLES = """\b
Examples:
  ottla quorum add 4 --endpoint controller-4:9093
  ottla quorum add --server-config server-4.properties      id, directory and listeners from the controller's own files
  ottla quorum add 4 --endpoint CONTROLLER://c4:9093 --directory-id 2oZZbdtPRUOUe6CnB3WtcA
"""

DEFAULT_LISTENER = "CONTROLLER"
_ENDPOINT = re.compile(r"(?:(?P<listener>[^:/]+)://)?\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d+)")


@click.command("add", epilog=EXAMPLES)
@click.argument("node", required=False, type=click.IntRange(0), shell_complete=complete_observers)
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="[NAME://]HOST:PORT",
    help=f"Where the controller listens. Repeatable. NAME is its listener.  [default: {DEFAULT_LISTENER}]",
)
@click.option("--directory-id", metavar="ID", help="The id of its metadata directory.  [default: that of the observer NODE]")
@click.option(
    "--server-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The server.properties of the controller, on its own machine: takes the place of the other flags.",
)
@cluster_options(takes_controllers=True)
def add(
    settings: ClientSettings,
    node: int | None,
    endpoints: tuple[str, ...],
    directory_id: str | None,
    server_config: Path | None,
) -> None:
    """Add a controller to the voters of the metadata quorum.

    NODE is the id of a controller that runs and follows as an observer: `ottla quorum describe` shows it. Add one at a time.
    """
    if server_config is not None:
        if node is not None or endpoints or directory_id is not None:
            raise click.UsageError("--server-config names the node, its directory and its endpoints: give it alone")
        node, directory_id, listeners = _from_files(server_config)
    else:
        if node is None or not endpoints:
            raise click.UsageError("name the controller and where it listens: ottla quorum add 4 --endpoint controller-4:9093")
        listeners = [parse_endpoint(each) for each in endpoints]
    node_id, given = node, directory_id

    async def work(cluster: Cluster) -> str:
        remedy = "Start it first, with process.roles=controller and the quorum's controller.quorum.bootstrap.servers"
        quorum = await describe_metadata_quorum(cluster)
        level = (await describe_features(cluster)).finalized.get("kraft.version")
        check_may_join(quorum, 0 if level is None else level.highest, node_id, given)
        directory = directory_of(quorum.observers, node_id, "observer", given, remedy)
        await add_raft_voter(cluster, node_id, directory, listeners)
        return uuid_text(directory)

    directory = with_cluster(settings, work)
    where = ", ".join(f"{each.host}:{each.port}" for each in listeners)
    say(f"Added controller {node_id} with directory id {directory} and endpoints {where}.")


def parse_endpoint(text: str) -> VoterEndpoint:
    """`host:port`, `NAME://host:port`, with IPv6 hosts in brackets."""
    match = _ENDPOINT.fullmatch(text.strip())
    if match is None or not 1 <= int(match["port"]) <= 65535:
        raise click.UsageError(f"--endpoint takes HOST:PORT or NAME://HOST:PORT, not {text!r}")
    return VoterEndpoint(match["listener"] or DEFAULT_LISTENER, match["host"], int(match["port"]))


def _from_files(path: Path) -> tuple[int, str, list[VoterEndpoint]]:
    """The node's id, its directory's id and its listeners, from its server.properties and its meta.properties."""
    from ottla.config.broker import BrokerConfig
    from ottla.env.real.world import real_world
    from ottla.log.directories.meta_properties import read_meta_properties

    config = BrokerConfig.from_settings(read_properties(str(path)))
    if not config.is_controller:
        raise click.UsageError(f"{path}: process.roles has no controller")
    directory = config.log.metadata_log_dir
    with real_world() as world:
        meta = read_meta_properties(world.disk, directory)
    if meta is None or meta.directory_id is None:
        raise click.UsageError(f"{directory} has no directory id: format it with `ottla storage format`")
    listeners = [VoterEndpoint(each.name, each.host, each.port) for each in config.advertised_controller_listeners]
    return config.node_id, uuid_text(meta.directory_id), listeners
