"""The `transactions` verb: shows transactions and their producers, finds those that hang, and ends them.

`find-hanging` looks for open transactions that no coordinator will end. `abort` writes an abort marker to one partition,
without the coordinator. `force-terminate` aborts the transaction of a transactional id, and fences its producer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_from_cluster, complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import ZOOKEEPER, cluster_options, json_option, plain_option, retired, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_tabbed, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.cli.common.times import current_ms, show_time
from ottla.cli.groups.command import parse_words
from ottla.client.admin import producers
from ottla.client.admin import transactions as transactions_api
from ottla.client.admin.transactions import (
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from ottla.client.cluster import Cluster
from ottla.client.hanging_transactions import Hanging, abort_at, abort_of, find_hanging_transactions, terminate
from ottla.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])


def complete_transactional_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The transactional ids that begin with `incomplete`."""

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


LIST_EXAMPLES = """\b
Examples:
  ottla transactions list
  ottla transactions list --state ongoing --duration-filter 60000     open for more than a minute
  ottla transactions list --transactional-id-pattern 'payments-.*' --json
"""

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


@click.command("list", epilog=LIST_EXAMPLES)
@click.option("--duration-filter", "duration_ms", type=int, metavar="MS", help="Only transactions open for longer than this.")
@click.option("--transactional-id-pattern", "pattern", metavar="REGEX", help="Only ids that match.")
@click.option("--state", "states", metavar="STATES", help="Only those in these states, with commas between them.")
@json_option
@plain_option
@wide_option
@cluster_options()
def list_command(
    settings: ClientSettings, duration_ms: int | None, pattern: str | None, states: str | None, as_json: bool, plain: bool
) -> None:
    """List the transactional ids of all coordinators, and their states."""
    chosen = parse_words(states, STATES, "--state")
    longer_than_ms = -1 if duration_ms is None else max(-1, duration_ms)
    listed = with_cluster(
        settings,
        lambda cluster: transactions_api.list_transactions(
            cluster, states=chosen, longer_than_ms=longer_than_ms, id_pattern=pattern
        ),
    )
    found = [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in listed]
    if as_json:
        names = ("transactionalId", "coordinator", "producerId", "transactionState")
        print_json([dict(zip(names, each, strict=True)) for each in found])
    elif is_for_people(as_json, plain):
        print_table(None, ("Transactional id", "#Coordinator", "#Producer", "State"), found)
    else:
        print_tabbed(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), found)


DESCRIBE_EXAMPLES = """\b
Examples:
  ottla transactions describe payments
  ottla transactions describe --transactional-id payments    Kafka's spelling
"""

DESCRIBE_HEADINGS = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)


@click.command("describe", epilog=DESCRIBE_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[IDS]...", shell_complete=complete_transactional_ids)
@click.option(
    "--transactional-id",
    "flagged",
    multiple=True,
    metavar="ID",
    shell_complete=complete_transactional_ids,
    help="Kafka's spelling of IDS.",
)
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(settings: ClientSettings, names: tuple[str, ...], flagged: tuple[str, ...], as_json: bool, plain: bool) -> None:
    """Show the producer, the state and the partitions of transactional ids."""
    ids = list(dict.fromkeys((*names, *flagged)))
    if not ids:
        raise click.UsageError("name the transactional id, for example: ottla transactions describe payments")
    described = with_cluster(settings, lambda cluster: describe_transactions(cluster, sorted(ids))).raise_first()
    if as_json:
        print_json([_as_json(name, view) for name, view in described.items()])
    elif is_for_people(as_json, plain):
        for name, view in described.items():
            _print_table(name, view)
    else:
        print_tabbed(DESCRIBE_HEADINGS, [_row(name, view) for name, view in described.items()])


def _duration_ms(view: TransactionDescription) -> int | None:
    return None if view.start is None else current_ms() - view.start


def _row(name: str, view: TransactionDescription) -> tuple[object, ...]:
    return (
        view.coordinator,
        name,
        view.producer_id,
        view.producer_epoch,
        view.state,
        view.timeout_ms,
        "None" if view.start is None else view.start,
        _duration_ms(view),
        ",".join(map(str, view.partitions)),
    )


def _print_table(name: str, view: TransactionDescription) -> None:
    rows = [
        ("Coordinator", view.coordinator),
        ("Producer id", view.producer_id),
        ("Producer epoch", view.producer_epoch),
        ("State", view.state),
        ("Timeout", f"{view.timeout_ms} ms"),
        ("Begun", show_time(view.start)),
        ("Open for", "-" if view.start is None else f"{_duration_ms(view)} ms"),
        ("Partitions", ", ".join(map(str, view.partitions)) or "-"),
    ]
    print_table(name, ("", "="), rows)


def _as_json(name: str, view: TransactionDescription) -> dict[str, object]:
    return {
        "transactionalId": name,
        "coordinator": view.coordinator,
        "producerId": view.producer_id,
        "producerEpoch": view.producer_epoch,
        "transactionState": view.state,
        "transactionTimeoutMs": view.timeout_ms,
        "transactionStartTimeMs": view.start,
        "transactionDurationMs": _duration_ms(view),
        "topicPartitions": [{"topic": each.topic, "partition": each.partition} for each in view.partitions],
    }


DESCRIBE_PRODUCERS_EXAMPLES = """\b
Examples:
  ottla transactions describe-producers orders:0
  ottla transactions describe-producers --topic orders --partition 0    Kafka's spelling
"""

PRODUCER_HEADINGS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
SHORT_PRODUCER_HEADINGS = ("#Producer", "#Epoch", "#Coordinator epoch", "#Last sequence", "#Last record", "#Transaction from")


@click.command("describe-producers", epilog=DESCRIBE_PRODUCERS_EXAMPLES)
@partition_arguments
@click.option("--broker-id", type=click.IntRange(0), metavar="ID", help="Ask this replica.  [default: the leader]")
@json_option
@plain_option
@wide_option
@cluster_options()
def describe_producers_command(
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
    found = with_cluster(settings, lambda cluster: producers.describe_producers(cluster, [wanted], broker_id=broker_id))[wanted]
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
        names = [heading[0].lower() + heading[1:] for heading in PRODUCER_HEADINGS]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif is_for_people(as_json, plain):
        shown = [(*row[:4], show_time(row[4]), "-" if row[5] is None else row[5]) for row in rows]
        print_table(str(wanted), SHORT_PRODUCER_HEADINGS, shown)
    else:
        print_tabbed(PRODUCER_HEADINGS, rows)


FIND_HANGING_EXAMPLES = """\b
Examples:
  ottla transactions find-hanging                                 in all partitions
  ottla transactions find-hanging --topic orders --max-transaction-timeout 5
\b
To end a hanging transaction:
  ottla transactions abort orders:0 --start-offset OFFSET
"""

HANGING_HEADINGS = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
SHORT_HANGING_HEADINGS = (
    "Topic",
    "#Partition",
    "#Producer",
    "#Epoch",
    "#Coordinator epoch",
    "#Start",
    "#Last record",
    "#Minutes",
)
MINUTE_MS = 60_000
TIMEOUT_MIN_DEFAULT = 15


@click.command("find-hanging", epilog=FIND_HANGING_EXAMPLES)
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

    async def find(cluster: Cluster) -> Hanging:
        return await find_hanging_transactions(
            cluster, topic, partition, broker_id, timeout_ms=timeout_min * MINUTE_MS, now_ms=current_ms()
        )

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
        names = [heading[0].lower() + heading[1:] for heading in (*HANGING_HEADINGS[:-1], "DurationMinutes")]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif is_for_people(as_json, plain):
        shown = [(*row[:6], show_time(row[6]), row[7]) for row in rows]
        print_table(None, SHORT_HANGING_HEADINGS, shown)
    else:
        print_tabbed(HANGING_HEADINGS, rows)
    return 1 if failures else 0


ABORT_EXAMPLES = """\b
Examples:
  ottla transactions abort orders:0 --start-offset 1042
  ottla transactions abort orders:0 --producer-id 2000 --producer-epoch 4 --coordinator-epoch 0
"""


@click.command("abort", epilog=ABORT_EXAMPLES)
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
            await abort_at(cluster, wanted, start_offset)
        else:
            await abort_of(cluster, wanted, producer_id or 0, producer_epoch or 0, coordinator_epoch)

    with_cluster(settings, run)
    if is_for_people():
        say(f"Aborted the transaction {what} of partition {wanted}.")


FORCE_TERMINATE_EXAMPLES = """\b
Examples:
  ottla transactions force-terminate payments
  ottla transactions forceTerminateTransaction --transactionalId payments    Kafka's spelling
"""


@click.command("force-terminate", epilog=FORCE_TERMINATE_EXAMPLES)
@click.argument("name", required=False, metavar="[ID]", shell_complete=complete_transactional_ids)
@click.option(
    "--transactional-id",
    "--transactionalId",
    "flagged",
    metavar="ID",
    shell_complete=complete_transactional_ids,
    help="Kafka's spelling of ID.",
)
@yes_option
@cluster_options()
def force_terminate(settings: ClientSettings, name: str | None, flagged: str | None, yes: bool) -> None:
    """Abort the open transaction of a transactional id, and fence its producer. Asks for confirmation on a terminal."""
    if (name is None) == (flagged is None):
        raise click.UsageError("name one transactional id, for example: ottla transactions force-terminate payments")
    transactional_id = name or flagged or ""
    confirm(f"Abort the open transaction of {transactional_id}, and fence its producer?", yes)
    with_cluster(settings, lambda cluster: terminate(cluster, transactional_id))
    if is_for_people():
        say(f"{transactional_id} has no open transaction any more.")


EXAMPLES = """\b
Examples:
  ottla transactions list
  ottla transactions describe payments
  ottla transactions describe-producers orders:0
  ottla transactions find-hanging --topic orders
  ottla transactions abort orders:0 --start-offset 1042
  ottla transactions --bootstrap-server localhost:9092 describe --transactional-id payments    Kafka's spelling
"""

ACTIONS = {
    "list": (list_command, "List transactional ids and their states."),
    "describe": (describe, "Show the transaction of a transactional id."),
    "describe-producers": (describe_producers_command, "Show the producers of a partition."),
    "find-hanging": (find_hanging, "Find open transactions that no coordinator will end."),
    "abort": (abort, "Abort a hanging transaction in one partition."),
    "force-terminate": (force_terminate, "Abort the open transaction of a transactional id."),
}
ALIASES = {"forceTerminateTransaction": "force-terminate"}


@click.command("transactions", cls=Actions, actions=ACTIONS, aliases=ALIASES, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def transactions() -> None:
    """List, describe and abort transactions.

    Actions and flags are those of Kafka's kafka-transactions. The output is a table on a terminal, Kafka's lines in a pipe,
    JSON with --json. `ottla transactions ACTION --help` shows the flags of an action.
    """
