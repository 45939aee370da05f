"""`ottla quorum remove`: takes a voter's vote."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, yes_option
from ottla.cli.common.output import confirm, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.quorum.replicas import complete_voters, directory_of
from ottla.client.admin.quorum import describe_metadata_quorum, remove_raft_voter
from ottla.client.cluster import Cluster
from ottla.ids import Uuid, uuid_text

EXAMPLES = """\b
Examples:
  ottla quorum remove 1
  ottla quorum remove 1 --directory-id 2oZZbdtPRUOUe6CnB3WtcA      one of two voters with the same id
  ottla quorum remove-controller --controller-id 1 --controller-directory-id …    Kafka's spelling
"""


@click.command("remove", epilog=EXAMPLES)
@click.argument("node", required=False, type=click.IntRange(0), shell_complete=complete_voters)
@click.option("--controller-id", "--id", "flagged", type=click.IntRange(0), metavar="NODE", help="Kafka's spelling of NODE.")
@click.option(
    "--directory-id",
    "--controller-directory-id",
    "directory_id",
    metavar="ID",
    help="The id of its metadata directory.  [default: that of the voter NODE]",
)
@yes_option
@cluster_options(takes_controllers=True)
def remove(settings: ClientSettings, node: int | None, flagged: int | None, directory_id: str | None, yes: bool) -> None:
    """Remove a controller from the voters of the metadata quorum. If it runs, it goes on as an observer: stop it afterwards."""
    node_id = flagged if node is None else node
    if node_id is None:
        raise click.UsageError("name the controller, for example: ottla quorum remove 1")

    async def find(cluster: Cluster) -> Uuid:
        voters = () if directory_id is not None else (await describe_metadata_quorum(cluster)).voters
        return directory_of(voters, node_id, "voter", directory_id, "`ottla quorum describe` shows them")

    directory = with_cluster(settings, find)
    warn(
        f"once controller {node_id} is stopped, Apache Kafka nodes whose controller.quorum.bootstrap.servers names only this "
        "controller find no other: give them several first. Ottla's nodes also ask the voters that their metadata names"
    )
    confirm(f"Remove controller {node_id} with directory id {uuid_text(directory)} from the voters?", yes)
    with_cluster(settings, lambda cluster: remove_raft_voter(cluster, node_id, directory))
    say(f"Removed controller {node_id} with directory id {uuid_text(directory)}.")
