"""`ottla reassign list`: the partitions that are being moved now. The lines for pipes are those of Kafka's tool."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.reassign.showing import joined
from ottla.client.admin.reassignments import list_partition_reassignments

EXAMPLES = """\b
Examples:
  ottla reassign list
  ottla reassign list --json
"""


@click.command("list", epilog=EXAMPLES)
@json_option
@plain_option
@wide_option
@cluster_options(takes_controllers=True)
def list_reassignments(settings: ClientSettings, as_json: bool, plain: bool) -> None:
    """List the partitions that are being moved: all replicas, those that are added and those that will be removed."""
    found = dict(sorted(with_cluster(settings, list_partition_reassignments).items()))
    if as_json:
        print_json([{"topic": each.topic, "partition": each.partition, **found[each]._asdict()} for each in found])
    elif not found:
        say("No partition reassignments found.")
    elif is_for_people(as_json, plain):
        rows = [
            (partition.topic, partition.partition, *map(joined, (each.replicas, each.adding, each.removing)))
            for partition, each in found.items()
        ]
        print_table(None, ("Topic", "#Partition", "=Replicas", "=Adding", "=Removing"), rows)
    else:
        say("Current partition reassignments:")
        for partition, each in found.items():
            adding = f" adding: {joined(each.adding)}." if each.adding else ""
            removing = f" removing: {joined(each.removing)}." if each.removing else ""
            say(f"{partition}: replicas: {joined(each.replicas)}.{adding}{removing}")
