"""`ottla transactions force-terminate`: aborts the transaction of a transactional id, and fences its producer."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, yes_option
from ottla.cli.common.output import confirm, is_for_people, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.transactions.choosing import complete_transactional_ids
from ottla.client.admin.transactions import describe_transactions, force_terminate_transaction
from ottla.client.cluster import Cluster

EXAMPLES = """\b
Examples:
  ottla transactions force-terminate payments
  ottla transactions forceTerminateTransaction --transactionalId payments    Kafka's spelling
"""


@click.command("force-terminate", epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[ID]", shell_complete=complete_transactional_ids)
@click.option(
    "--transactional-id",
    "--transactionalId",
    "flagged",
    metavar="ID",
    shell_complete=complete_transactional_ids,
    help="Kafka's spelling of ID.",
)
@yes_option
@cluster_options()
def force_terminate(settings: ClientSettings, name: str | None, flagged: str | None, yes: bool) -> None:
    """Abort the open transaction of a transactional id, and fence its producer. Asks for confirmation on a terminal."""
    if (name is None) == (flagged is None):
        raise click.UsageError("name one transactional id, for example: ottla transactions force-terminate payments")
    transactional_id = name or flagged or ""
    confirm(f"Abort the open transaction of {transactional_id}, and fence its producer?", yes)
    with_cluster(settings, lambda cluster: _terminate(cluster, transactional_id))
    if is_for_people():
        say(f"{transactional_id} has no open transaction any more.")


async def _terminate(cluster: Cluster, transactional_id: str) -> None:
    # This would create an unknown id. Check first, so that a mistyped id is an error.
    (await describe_transactions(cluster, [transactional_id])).raise_first()
    await force_terminate_transaction(cluster, transactional_id)
