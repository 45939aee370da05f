"""`ottla transactions abort`: writes an abort marker to one partition, without the coordinator."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, yes_option
from ottla.cli.common.output import confirm, is_for_people, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.transactions.choosing import find_partition, partition_arguments
from ottla.client.admin.producers import abort_transaction, describe_producers
from ottla.client.cluster import Cluster
from ottla.errors import OttlaError
from ottla.ids import TopicPartition

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
            found_id, epoch, last_epoch = await _find(cluster, wanted, start_offset)
        else:
            found_id, epoch, last_epoch = producer_id or 0, producer_epoch or 0, coordinator_epoch
        # -1 or None: the producer's first transaction hangs, so it has no coordinator epoch yet. 0 is accepted then.
        last_epoch = max(0, last_epoch or 0)
        await abort_transaction(cluster, wanted, producer_id=found_id, producer_epoch=epoch, coordinator_epoch=last_epoch)

    with_cluster(settings, run)
    if is_for_people():
        say(f"Aborted the transaction {what} of partition {wanted}.")


async def _find(cluster: Cluster, partition: TopicPartition, start_offset: int) -> tuple[int, int, int | None]:
    """The ids and epochs of the producer whose transaction begins there."""
    for each in (await describe_producers(cluster, [partition]))[partition]:
        if each.transaction_start_offset == start_offset:
            return each.producer_id, each.producer_epoch, each.coordinator_epoch
    raise OttlaError(
        f"no open transaction begins at offset {start_offset} of partition {partition}: "
        f"`ottla transactions describe-producers {partition.topic}:{partition.partition}` shows the open ones"
    )
