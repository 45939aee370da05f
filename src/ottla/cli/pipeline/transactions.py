"""`ottla pipeline transactions`: what exactly-once sinks have left open, and how to end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_tabbed, print_table, say
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import current_ms
from ottla.config.client.kinds import PRODUCER
from ottla.errors import OttlaError
from ottla.spark import clients
from ottla.spark.errors import SinkError
from ottla.spark.sink import commit, recovery
from ottla.spark.sink.options import DECISIONS_TOPIC, SinkOptions
from ottla.spark.sink.recovery import UNDECIDED, Lingering

EXAMPLES = """\b
Examples:
  ottla pipeline transactions                                      list what sinks have left open
  ottla pipeline transactions --query ID --commit                  show what would be committed
  ottla pipeline transactions --query ID --commit --execute        finish the batch that its driver had decided to commit
  ottla pipeline transactions --query ID --abort --execute         abort what no driver has decided about
"""

T = TypeVar("T")

COLUMNS = ("query", "batch", "task", "state", "ageMs", "transactionalId")
HEADINGS = ("Query", "#Batch", "#Task", "State", "#Age", "Transactional id")
ACTIONS = {"commit": "commit", "abort": "abort", "accept-loss": "accept the loss of"}


@click.command("transactions", epilog=EXAMPLES)
@click.option("--query", metavar="ID", help="Only this streaming query, or batch write.")
@click.option("--commit", "action", flag_value="commit", help="Commit the query's batch that is decided and not finished.")
@click.option("--abort", "action", flag_value="abort", help="Abort the query's open transactions that are not decided.")
@click.option("--accept-loss", "action", flag_value="accept-loss", help="Let the query go on after a half committed batch.")
@click.option("--even-decided", is_flag=True, help="With --abort: also a decided batch of which nothing is committed yet.")
@click.option("--execute", is_flag=True, help="Do it. Without this, only show what would be done.")
@click.option("--decisions-topic", default=DECISIONS_TOPIC, show_default=True, metavar="NAME", help="As in the sink's option.")
@yes_option
@json_option
@plain_option
@wide_option
@cluster_options()
def transactions(
    settings: ClientSettings,
    query: str | None,
    action: str | None,
    even_decided: bool,
    execute: bool,
    decisions_topic: str,
    yes: bool,
    as_json: bool,
    plain: bool,
) -> None:
    """List the open transactions of exactly-once sinks, or end those of one query.

    Readers with read_committed do not get past an open transaction. A query that is started again ends its own. For one that
    will not come back: --commit finishes a batch that its driver had decided to commit, --abort drops everything else. Both
    take the query over: if it is still running, it fails, and repeats its batch when it is started again.
    """
    if action is not None and query is None:
        raise click.UsageError(f"--{action} needs --query ID; without flags the command lists the queries")
    if (execute or even_decided) and action is None:
        raise click.UsageError("say what to do: --commit, --abort or --accept-loss")
    client = {name: value for name, value in settings.properties.items() if name in PRODUCER.table}
    options = SinkOptions(client, is_exactly_once=True, decisions_topic=decisions_topic)
    rows = _told(lambda: recovery.find_lingering(options, query))
    if action is None or query is None:
        _show(rows, as_json, plain)
        return
    wanted = _chosen(rows, action, even_decided, query)
    if execute:
        confirm(f"{ACTIONS[action].capitalize()} {len(wanted)} of query {query}? If it is running, it fails.", yes)
        _told(lambda: _act(options, action, query, even_decided))
    _show(wanted, as_json, plain)
    if not as_json:
        done = "done" if execute else "nothing was changed; add --execute to do it"
        say(f"{ACTIONS[action]} query {query}, {len(wanted)} transactions: {done}", err=True)


def _chosen(rows: list[Lingering], action: str, even_decided: bool, query: str) -> list[Lingering]:
    """The rows that an action concerns; an error if there are none, or if it must not touch them."""
    states: tuple[str, ...] = {"commit": ("decided",), "abort": (UNDECIDED,), "accept-loss": ("broken",)}[action]
    decided = [each for each in rows if each.state == "decided"]
    if action == "abort" and decided and not even_decided:
        raise OttlaError(
            f"batch {decided[0].batch} of query {query} is decided: --commit finishes it, and so does the query's next run. "
            "--abort leaves it alone unless you add --even-decided; a restart then writes the batch again"
        )
    if action == "abort" and even_decided:
        states = (UNDECIDED, "decided")
    found = [each for each in rows if each.state in states]
    if not found:
        there = " and ".join(sorted({each.state for each in rows}))
        hint = f"its transactions are {there}" if there else "it has nothing open"
        raise OttlaError(f"query {query} has nothing to {ACTIONS[action]}: {hint}")
    return found


def _act(options: SinkOptions, action: str, query: str, even_decided: bool) -> None:
    if action == "commit":
        recovery.commit_decided(options, query)
    elif action == "abort":
        recovery.abort_undecided(options, query, even_decided=even_decided)
    else:
        recovery.accept_loss(options, query)


def _told(work: Callable[[], T]) -> T:
    """Run, close what was opened, and show the sink's errors as those of a command."""
    try:
        return work()
    except SinkError as error:
        raise OttlaError(str(error)) from error
    finally:
        commit.close_ledgers()
        clients.close_all()


def _show(rows: list[Lingering], as_json: bool, plain: bool) -> None:
    now_ms = current_ms()
    found = [
        (
            each.query,
            each.batch,
            each.task,
            each.state,
            None if each.began_ms is None else max(0, now_ms - each.began_ms),
            each.transactional_id,
        )
        for each in rows
    ]
    if as_json:
        print_json([dict(zip(COLUMNS, row, strict=True)) for row in found])
        return
    if is_for_people(as_json, plain):
        shown = [
            [_shown_age(cell) if index == 4 else "-" if cell is None else cell for index, cell in enumerate(row)]
            for row in found
        ]
        print_table(None, HEADINGS, shown)
    else:
        print_tabbed(
            ("Query", "Batch", "Task", "State", "AgeMs", "TransactionalId"),
            [["-" if cell is None else cell for cell in row] for row in found],
        )


def _shown_age(age_ms: object) -> str:
    if not isinstance(age_ms, int):
        return "-"
    seconds = age_ms // 1000
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
