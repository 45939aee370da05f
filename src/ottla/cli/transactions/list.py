"""`ottla transactions list`."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.list import parse_words
from ottla.client.admin import transactions as admin

EXAMPLES = """\b
Examples:
  ottla transactions list
  ottla transactions list --state ongoing --duration-filter 60000     open for more than a minute
  ottla transactions list --transactional-id-pattern 'payments-.*' --json
"""

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


@click.command("list", epilog=EXAMPLES)
@click.option("--duration-filter", "duration_ms", type=int, metavar="MS", help="Only transactions open for longer than this.")
@click.option("--transactional-id-pattern", "pattern", metavar="REGEX", help="Only ids that match.")
@click.option("--state", "states", metavar="STATES", help="Only those in these states, with commas between them.")
@json_option
@plain_option
@wide_option
@cluster_options()
def list_transactions(
    settings: ClientSettings, duration_ms: int | None, pattern: str | None, states: str | None, as_json: bool, plain: bool
) -> None:
    """List the transactional ids of all coordinators, and their states."""
    chosen = parse_words(states, STATES, "--state")
    longer_than_ms = -1 if duration_ms is None else max(-1, duration_ms)
    listed = with_cluster(
        settings,
        lambda cluster: admin.list_transactions(cluster, states=chosen, longer_than_ms=longer_than_ms, id_pattern=pattern),
    )
    found = [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in listed]
    if as_json:
        names = ("transactionalId", "coordinator", "producerId", "transactionState")
        print_json([dict(zip(names, each, strict=True)) for each in found])
    elif is_for_people(as_json, plain):
        print_table(None, ("Transactional id", "#Coordinator", "#Producer", "State"), found)
    else:
        print_tabbed(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), found)
