"""`ottla transactions describe`."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import current_ms, show_time
from ottla.cli.transactions.choosing import complete_transactional_ids
from ottla.client.admin.transactions import TransactionDescription, describe_transactions

EXAMPLES = """\b
Examples:
  ottla transactions describe payments
  ottla transactions describe --transactional-id payments    Kafka's spelling
"""

HEADINGS = (
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


@click.command("describe", epilog=EXAMPLES)
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
        print_tabbed(HEADINGS, [_row(name, view) for name, view in described.items()])


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
