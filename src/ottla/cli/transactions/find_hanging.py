"""`ottla transactions find-hanging`: open transactions that no coordinator will end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import current_ms, show_time
from ottla.client.admin.producers import ProducerState, describe_producers
from ottla.client.admin.topic_descriptions import describe_topics, list_topics
from ottla.client.admin.transactions import describe_transactions, list_transactions
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, TransactionalIdNotFoundError
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla transactions find-hanging                                 in all partitions
  ottla transactions find-hanging --topic orders --max-transaction-timeout 5
\b
To end a hanging transaction:
  ottla transactions abort orders:0 --start-offset OFFSET
"""

HEADINGS = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
SHORT_HEADINGS = ("Topic", "#Partition", "#Producer", "#Epoch", "#Coordinator epoch", "#Start", "#Last record", "#Minutes")
MINUTE_MS = 60_000
TIMEOUT_MIN_DEFAULT = 15


class OpenTransaction(NamedTuple):
    """An open transaction in a partition."""

    partition: TopicPartition
    producer: ProducerState


@click.command("find-hanging", epilog=EXAMPLES)
@click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Only partitions of this topic.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Only this partition of the topic.")
@click.option("--broker-id", type=click.IntRange(0), metavar="ID", help="Only replicas on this broker.")
@click.option(
    "--max-transaction-timeout",
    "timeout_min",
    type=click.IntRange(0),
    default=TIMEOUT_MIN_DEFAULT,
    show_default=True,
    metavar="MINUTES",
    help="The longest a transaction may last; see the brokers' transaction.max.timeout.ms.",
)
@json_option
@plain_option
@wide_option
@cluster_options()
def find_hanging(
    settings: ClientSettings,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    timeout_min: int,
    as_json: bool,
    plain: bool,
) -> int:
    """Find transactions that are open for longer than allowed and that no coordinator knows.

    Consumers with read_committed cannot read past such a transaction until it is aborted.
    """
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs a --topic")

    async def find(cluster: Cluster) -> tuple[list[OpenTransaction], dict[TopicPartition, KafkaError]]:
        partitions = await _partitions(cluster, topic, partition, broker_id)
        described = await describe_producers(cluster, partitions, broker_id=broker_id)
        overdue = [
            OpenTransaction(each, producer)
            for each, producers in described.values_found.items()
            for producer in producers
            if _is_overdue(producer, timeout_min * MINUTE_MS)
        ]
        return await _hanging(cluster, overdue), described.errors

    found, failures = with_cluster(settings, find)
    for each, error in failures.items():
        warn(f"{each} is left out: {explain(error)}")
    rows = [
        (
            *partition_of,
            producer.producer_id,
            producer.producer_epoch,
            -1 if producer.coordinator_epoch is None else producer.coordinator_epoch,
            producer.transaction_start_offset,
            producer.last_timestamp,
            (current_ms() - producer.last_timestamp) // MINUTE_MS,
        )
        for partition_of, producer in found
    ]
    if as_json:
        names = [heading[0].lower() + heading[1:] for heading in (*HEADINGS[:-1], "DurationMinutes")]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif is_for_people(as_json, plain):
        shown = [(*row[:6], show_time(row[6]), row[7]) for row in rows]
        print_table(None, SHORT_HEADINGS, shown)
    else:
        print_tabbed(HEADINGS, rows)
    return 1 if failures else 0


def _is_overdue(producer: ProducerState, timeout_ms: int) -> bool:
    """Whether it has an open transaction, and has not written for `timeout_ms`."""
    return producer.transaction_start_offset is not None and current_ms() - producer.last_timestamp > timeout_ms


async def _partitions(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    names = [topic] if topic is not None else list(await list_topics(cluster, include_internal=True))
    topics = await describe_topics(cluster, names)
    if topics.errors and topic is not None:  # of all topics, one may be deleted between listing and describing
        topics.raise_first()
    return sorted(
        TopicPartition(each.name, one.partition)
        for each in topics.values_found.values()
        for one in each.partitions
        if (broker_id is None and one.leader is not None) or broker_id in one.replicas
    )


async def _hanging(cluster: Cluster, overdue: Sequence[OpenTransaction]) -> list[OpenTransaction]:
    """Those that no coordinator will end: none knows the producer, or the partition is not in its transaction."""
    if not overdue:
        return []
    ids = {each.producer.producer_id for each in overdue}
    listed = {each.transactional_id: each.producer_id for each in await list_transactions(cluster, producer_ids=ids)}
    described = await describe_transactions(cluster, listed)
    for error in described.errors.values():
        if not isinstance(error, TransactionalIdNotFoundError):
            raise error
    expected = {(listed[name], each) for name, view in described.values_found.items() for each in view.partitions}
    return [each for each in overdue if (each.producer.producer_id, each.partition) not in expected]
