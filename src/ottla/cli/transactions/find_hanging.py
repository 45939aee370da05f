"""`ottla transactions find-hanging`: open transactions that no coordinator will end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from ottla.cli.common.cluster import Cluster
from ottla.cli.common.completion import complete_topics
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import current_ms, show_time
from ottla.cli.transactions.asking import describe_transactions, find_producers, list_transactions
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.describe_producers import ProducerState

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
) -> None:
    """Find transactions that are open for longer than allowed and that no coordinator knows.

    Consumers with read_committed cannot read past such a transaction until it is aborted.
    """
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs a --topic")

    async def find(cluster: Cluster) -> list[OpenTransaction]:
        partitions = await _partitions(cluster, topic, partition, broker_id)
        return await _hanging(cluster, await _overdue(cluster, partitions, broker_id, timeout_min * MINUTE_MS))

    found = with_cluster(settings, find)
    rows = [
        (
            *each.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            each.producer.coordinator_epoch,
            each.producer.current_txn_start_offset,
            each.producer.last_timestamp,
            (current_ms() - each.producer.last_timestamp) // MINUTE_MS,
        )
        for each in found
    ]
    if as_json:
        names = [heading[0].lower() + heading[1:] for heading in (*HEADINGS[:-1], "DurationMinutes")]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif is_for_people(as_json, plain):
        shown = [(*row[:6], show_time(row[6]), row[7]) for row in rows]
        print_table(None, SHORT_HEADINGS, shown)
    else:
        print_tabbed(HEADINGS, rows)


async def _partitions(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    topics = [await cluster.topic(topic)] if topic is not None else list((await cluster.topics()).values())
    return sorted(
        TopicPartition(each.name or "", one.partition_index)
        for each in topics
        for one in each.partitions
        if (broker_id is None and one.leader_id >= 0) or broker_id in one.replica_nodes
    )


async def _overdue(
    cluster: Cluster, partitions: Sequence[TopicPartition], broker_id: int | None, timeout_ms: int
) -> list[OpenTransaction]:
    """Open transactions whose producer has not written for `timeout_ms`."""
    overdue: list[OpenTransaction] = []
    for each, producers in (await find_producers(cluster, partitions, broker_id)).items():
        if isinstance(producers, KafkaError):
            warn(f"{each} is left out: {producers}")
            continue
        overdue += [
            OpenTransaction(each, producer)
            for producer in producers
            if producer.current_txn_start_offset >= 0 and current_ms() - producer.last_timestamp > timeout_ms
        ]
    return overdue


async def _hanging(cluster: Cluster, overdue: Sequence[OpenTransaction]) -> list[OpenTransaction]:
    """Those that no coordinator will end: none knows the producer, or the partition is not in its transaction."""
    if not overdue:
        return []
    ids = {each.producer.producer_id for each in overdue}
    listed = {each.producer_id: each.id for each in await list_transactions(cluster, producer_ids=ids)}
    expected: set[tuple[int, TopicPartition]] = set()
    for view in (await describe_transactions(cluster, listed.values())).values():
        if isinstance(view, KafkaError):
            if view.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise view
        else:
            expected |= {
                (producer_id, each) for producer_id in ids if listed.get(producer_id) == view.id for each in view.partitions
            }
    return [each for each in overdue if (each.producer.producer_id, each.partition) not in expected]
