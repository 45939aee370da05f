"""`ottla cluster id`."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import is_for_people, print_json, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.cluster_state import describe_cluster

EXAMPLES = """\b
Examples:
  ottla cluster id
  ottla cluster cluster-id --bootstrap-server localhost:9092    Kafka's spelling
"""


@click.command("id", epilog=EXAMPLES)
@json_option
@cluster_options()
def identity(settings: ClientSettings, as_json: bool) -> None:
    """Print the id of the cluster: `Cluster ID: …`, as kafka-cluster does; on a terminal the id alone."""
    described = with_cluster(settings, describe_cluster)
    if as_json:
        print_json({"clusterId": described.cluster_id})
    else:
        say(described.cluster_id if is_for_people() else f"Cluster ID: {described.cluster_id}")
