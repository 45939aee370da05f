"""`ottla transactions abort`: writes an abort marker to one partition, without the coordinator."""

from __future__ import annotations

import click

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.options import cluster_options, yes_option
from ottla.cli.common.output import confirm, is_for_people, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.transactions.asking import find_producers
from ottla.cli.transactions.choosing import find_partition, partition_arguments
from ottla.errors import KafkaError, OttlaError
from ottla.ids import TopicPartition
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

EXAMPLES = """\b
Examples:
  ottla transactions abort orders:0 --start-offset 1042
  ottla transactions abort orders:0 --producer-id 2000 --producer-epoch 4 --coordinator-epoch 0
"""


@click.command("abort", epilog=EXAMPLES)
@partition_arguments
@click.option("--start-offset", type=click.IntRange(0), metavar="N", help="Where the transaction begins in the partition.")
@click.option(
    "--producer-id", type=click.IntRange(0), metavar="ID", help="Instead, for brokers before 3.0: the producer's id …"
)
@click.option("--producer-epoch", type=click.IntRange(0), metavar="N", help="… its epoch …")
@click.option("--coordinator-epoch", type=int, metavar="N", help="… and the coordinator's epoch.")
@yes_option
@cluster_options()
def abort(
    settings: ClientSettings,
    place: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    yes: bool,
) -> None:
    """Abort a hanging transaction in one partition. Asks for confirmation on a terminal.

    This is for transactions that no coordinator will end (`ottla transactions find-hanging`). A transaction that is still in
    use loses the records it has written to the partition.
    """
    wanted = find_partition(place, topic, partition, "abort")
    parts = (producer_id, producer_epoch, coordinator_epoch)
    is_whole = None not in parts
    if (start_offset is None) != is_whole or (start_offset is not None and parts != (None, None, None)):
        raise click.UsageError(
            "say which transaction: --start-offset N, or all of --producer-id, --producer-epoch and --coordinator-epoch"
        )
    what = f"at offset {start_offset}" if start_offset is not None else f"of producer {producer_id}"
    confirm(f"Abort the transaction {what} of partition {wanted}?", yes)

    async def run(cluster: Cluster) -> None:
        if start_offset is not None:
            marker = await _find(cluster, wanted, start_offset)
        else:
            # -1: the producer's first transaction hangs, so it has no coordinator epoch yet. 0 is accepted then.
            marker = WritableTxnMarker(
                producer_id=producer_id or 0,
                producer_epoch=producer_epoch or 0,
                coordinator_epoch=max(0, coordinator_epoch or 0),
            )
        await _write(cluster, wanted, marker)

    with_cluster(settings, run)
    if is_for_people():
        say(f"Aborted the transaction {what} of partition {wanted}.")


async def _find(cluster: Cluster, partition: TopicPartition, start_offset: int) -> WritableTxnMarker:
    producers = (await find_producers(cluster, [partition]))[partition]
    if isinstance(producers, KafkaError):
        raise producers
    for each in producers:
        if each.current_txn_start_offset == start_offset:
            return WritableTxnMarker(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                coordinator_epoch=max(0, each.coordinator_epoch),
            )
    raise OttlaError(
        f"no open transaction begins at offset {start_offset} of partition {partition}: "
        f"`ottla transactions describe-producers {partition.topic}:{partition.partition}` shows the open ones"
    )


async def _write(cluster: Cluster, partition: TopicPartition, marker: WritableTxnMarker) -> None:
    marker.transaction_result = False
    marker.topics = [WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])]

    async def ask(broker_id: int, wanted: list[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        request = WriteTxnMarkersRequest(markers=[marker])
        response: WriteTxnMarkersResponse = await (await cluster.link_to(broker_id)).request(request)
        code = next(each.error_code for one in response.markers for topic in one.topics for each in topic.partitions)
        about = f"the transaction of producer {marker.producer_id} in partition {partition} was not aborted"
        return {partition: refusal(code, about) if code else None}

    outcome = (await cluster.by_leader([partition], ask))[partition]
    if isinstance(outcome, KafkaError):
        raise outcome
