"""`ottla transactions describe-producers`."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import show_time
from ottla.cli.transactions.choosing import find_partition, partition_arguments
from ottla.client.admin import producers as admin

EXAMPLES = """\b
Examples:
  ottla transactions describe-producers orders:0
  ottla transactions describe-producers --topic orders --partition 0    Kafka's spelling
"""

HEADINGS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
SHORT_HEADINGS = ("#Producer", "#Epoch", "#Coordinator epoch", "#Last sequence", "#Last record", "#Transaction from")


@click.command("describe-producers", epilog=EXAMPLES)
@partition_arguments
@click.option("--broker-id", type=click.IntRange(0), metavar="ID", help="Ask this replica.  [default: the leader]")
@json_option
@plain_option
@wide_option
@cluster_options()
def describe_producers(
    settings: ClientSettings,
    place: str | None,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Show the active producers of a partition, and where their open transactions begin."""
    wanted = find_partition(place, topic, partition, "describe-producers")
    found = with_cluster(settings, lambda cluster: admin.describe_producers(cluster, [wanted], broker_id=broker_id))[wanted]
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            -1 if each.coordinator_epoch is None else each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.transaction_start_offset,
        )
        for each in found
    ]
    if as_json:
        names = [heading[0].lower() + heading[1:] for heading in HEADINGS]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif is_for_people(as_json, plain):
        shown = [(*row[:4], show_time(row[4]), "-" if row[5] is None else row[5]) for row in rows]
        print_table(str(wanted), SHORT_HEADINGS, shown)
    else:
        print_tabbed(HEADINGS, rows)
