"""Arguments that name a partition or a transactional id, also in Kafka's spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_from_cluster, complete_topics
from ottla.client.cluster import Cluster
from ottla.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])


def complete_transactional_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The transactional ids that begin with `incomplete`."""
    from ottla.client.admin.transactions import list_transactions

    async def ids(cluster: Cluster) -> list[str]:
        return [each.transactional_id for each in await list_transactions(cluster)]

    return complete_from_cluster(ctx, incomplete, ids)


def partition_arguments(function: F) -> F:
    """Add the argument `orders:0`, and Kafka's `--topic` and `--partition`; for `find_partition`."""
    function = click.option("--partition", type=click.IntRange(0), metavar="N", help="Kafka's spelling: the partition.")(
        function
    )
    function = click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Kafka's spelling: the topic.")(
        function
    )
    return click.argument("place", required=False, metavar="[TOPIC:PARTITION]")(function)


def find_partition(place: str | None, topic: str | None, partition: int | None, action: str) -> TopicPartition:
    """The partition that the arguments name."""
    if place is not None and topic is None and partition is None:
        name, _, number = place.rpartition(":")
        if not name or not number.isascii() or not number.isdigit():
            raise click.UsageError(f"{place!r} is not TOPIC:PARTITION: write for example orders:0")
        return TopicPartition(name, int(number))
    if place is not None or topic is None or partition is None:
        raise click.UsageError(
            f"name one partition, for example: ottla transactions {action} orders:0 (Kafka: --topic orders --partition 0)"
        )
    return TopicPartition(topic, partition)
