"""`ottla cluster unregister`."""

from __future__ import annotations

import click

from ottla.cli.brokers.rows import complete_brokers
from ottla.cli.common.options import cluster_options, yes_option
from ottla.cli.common.output import confirm, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.cluster_state import unregister_broker

EXAMPLES = """\b
Examples:
  ottla cluster unregister 4
  ottla cluster unregister --id 4 --bootstrap-server localhost:9092    Kafka's spelling
"""


@click.command("unregister", epilog=EXAMPLES)
@click.argument("broker", required=False, type=click.IntRange(0), shell_complete=complete_brokers)
@click.option("--id", "flagged", type=click.IntRange(0), metavar="BROKER", help="Kafka's spelling of BROKER.")
@yes_option
@cluster_options()
def unregister(settings: ClientSettings, broker: int | None, flagged: int | None, yes: bool) -> None:
    """Remove a broker that is gone for good from the cluster's metadata. Partitions keep it as a replica until reassigned."""
    broker_id = flagged if broker is None else broker
    if broker_id is None:
        raise click.UsageError("name the broker, for example: ottla cluster unregister 4")
    confirm(f"Remove broker {broker_id} from the cluster?", yes)
    with_cluster(settings, lambda cluster: unregister_broker(cluster, broker_id))
    say(f"Broker {broker_id} is no longer registered.")
