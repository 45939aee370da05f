"""`ottla groups reset-offsets`: flags and output. `resetting.py` computes the new offsets."""

from __future__ import annotations

from typing import Any

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_data, print_json, print_padded, print_table, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.choosing import group_arguments, named_groups, parse_topics, timeout_option, with_timeout
from ottla.cli.groups.reset_plan import Plan, read_plan, to_csv
from ottla.cli.groups.reset_target import Scenario, find_target, target_options
from ottla.cli.groups.resetting import Reset, reset

EXAMPLES = """\b
Examples:
  ottla groups reset-offsets billing --topic orders --to-earliest            shows what it would do
  ottla groups reset-offsets billing --topic orders --to-earliest --execute  does it
  ottla groups reset-offsets billing --all-topics --shift-by -100 --execute
  ottla groups reset-offsets billing --topic orders:0,1 --to-datetime 2026-01-31T12:00:00.000 --execute
  ottla groups reset-offsets billing --all-topics --to-current --export > billing.csv
  ottla groups reset-offsets billing --from-file billing.csv --execute
"""


@click.command("reset-offsets", epilog=EXAMPLES)
@group_arguments
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1]",
    shell_complete=complete_topics,
    help="A topic, or some of its partitions. Repeatable.",
)
@click.option("--all-topics", is_flag=True, help="All partitions with committed offsets of the group.")
@target_options
@click.option("--dry-run", is_flag=True, help="Only show what would be done; the default.")
@click.option("--execute", is_flag=True, help="Do it.")
@click.option("--export", is_flag=True, help="Show the new offsets as CSV, which --from-file reads.")
@timeout_option
@json_option
@plain_option
@wide_option
@cluster_options()
def reset_offsets(
    settings: ClientSettings,
    named: tuple[str, ...],
    flagged: tuple[str, ...],
    all_groups: bool,
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    execute: bool,
    export: bool,
    timeout_ms: int | None,
    as_json: bool,
    plain: bool,
    **arguments: Any,
) -> int:
    """Change the committed offsets of groups. Without --execute the new offsets are only shown.

    A group must have no members while its offsets are changed. A group that does not exist yet is created.
    """
    ids = named_groups(named, flagged, all_groups, "reset-offsets")
    target = find_target(arguments)
    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute cannot be used together: choose one of them")
    if target.scenario is Scenario.FILE and (topics or all_topics):
        raise click.UsageError("--from-file names the partitions: leave --topic and --all-topics out")
    if target.scenario is not Scenario.FILE and bool(topics) == all_topics:
        raise click.UsageError("say which partitions: --topic orders, --topic orders:0,1 or --all-topics")
    wanted = Reset(
        ids=ids,
        topics=None if all_topics else parse_topics(topics),
        target=target,
        plan=read_plan(target.path, ids) if target.scenario is Scenario.FILE else None,
        execute=execute,
    )
    plan, refused = with_cluster(with_timeout(settings, timeout_ms), lambda cluster: reset(cluster, wanted))
    for sentence in refused:
        warn(sentence)
    _show(plan, export, as_json, plain, with_group=ids is None or len(ids) != 1)
    if not execute and plan and not dry_run:
        warn("nothing was changed: add --execute to do it")
    return 1 if refused else 0


def _show(plan: Plan, export: bool, as_json: bool, plain: bool, with_group: bool) -> None:
    rows = [(group_id, *each, offset) for group_id, offsets in plan.items() for each, offset in offsets.items()]
    if export:
        print_data([*to_csv(plan, with_group), ""])  # Kafka's tool ends with an empty line, too
    elif as_json:
        names = ("group", "topic", "partition", "newOffset")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif is_for_people(as_json, plain):
        print_table(None, ("Group", "Topic", "#Partition", "#New offset"), rows)
    elif plan:
        say()
        print_padded(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows, (15, 15, 10, 0))
