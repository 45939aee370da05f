"""`ottla topics alter`: adds partitions."""

from __future__ import annotations

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option, retired, yes_option
from ottla.cli.common.output import confirm, print_json, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import choose, parse_assignment, topic_arguments
from ottla.cli.topics.seeing import see
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.admin.topics import NewPartitions, create_partitions
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError

EXAMPLES = """\b
Examples:
  ottla topics alter orders --partitions 6
  ottla configs alter topic orders --set retention.ms=86400000    settings are changed there
"""

KEYS_MOVE = (
    "adding partitions changes which partition a key goes to: records of one key will no longer all be in one partition, "
    "nor in order across the old and the new one"
)
USE_CONFIGS = "settings are changed with: ottla configs alter topic NAME --set KEY=VALUE"


@click.command("alter", epilog=EXAMPLES)
@topic_arguments
@click.option("--partitions", type=click.IntRange(1), required=True, help="The new number of partitions.")
@click.option("--replica-assignment", metavar="1:2,2:3", help="Which brokers hold which partition, the old ones included.")
@click.option("--if-exists", is_flag=True, help="Do nothing if there is no such topic.")
@retired("--config", USE_CONFIGS)
@retired("--delete-config", USE_CONFIGS)
@yes_option
@json_option
@cluster_options()
def alter(
    settings: ClientSettings,
    names: tuple[str, ...],
    pattern: str | None,
    partitions: int,
    replica_assignment: str | None,
    if_exists: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Add partitions to topics. Partitions cannot be removed."""
    if not names and pattern is None:
        raise click.UsageError("name the topic to alter, for example: ottla topics alter orders --partitions 6")
    assignment = parse_assignment(replica_assignment) if replica_assignment is not None else None
    chosen = with_cluster(settings, lambda cluster: _partition_counts(cluster, names, pattern, if_exists))
    if not chosen:
        return 0
    warn(KEYS_MOVE)
    confirm(f"Give {', '.join(chosen)} {partitions} partitions?", yes)
    failures = with_cluster(settings, lambda cluster: _alter(cluster, chosen, partitions, assignment))
    if as_json:
        print_json([{"topic": name, "partitions": partitions} for name in chosen if name not in failures])
    for failure in failures.values():
        warn(explain(failure))
    return 1 if failures else 0


async def _partition_counts(cluster: Cluster, names: tuple[str, ...], pattern: str | None, if_exists: bool) -> dict[str, int]:
    known = await list_topics(cluster, include_internal=True)
    return {name: known[name].partitions for name in choose(known, names, pattern, if_exists)}


async def _alter(
    cluster: Cluster, counts: dict[str, int], partitions: int, assignment: list[list[int]] | None
) -> dict[str, KafkaError]:
    """Add the partitions; the error of each topic that was refused."""
    wanted = {
        name: NewPartitions(partitions, None if assignment is None else assignment[count:]) for name, count in counts.items()
    }
    failures = (await create_partitions(cluster, wanted)).errors
    for name in counts:
        if name not in failures:
            await see(cluster, name, lambda topic: topic is not None and len(topic.partitions) >= partitions)
    return failures
