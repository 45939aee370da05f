"""`ottla groups reset-offsets`: selects groups and partitions, computes the new offsets, and commits them.

The target is one of Kafka's scenarios. Plans are read and written as Kafka's CSV: `topic,partition,offset` for one group,
`group,topic,partition,offset` for several.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_data, print_json, print_padded, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import TIME_HELP, current_ms, parse_time_ms
from ottla.cli.groups.command import group_arguments, named_groups, parse_topics, timeout_option, with_timeout
from ottla.client.cluster import Cluster
from ottla.client.group_resets import Plan, Planned, Reset, Scenario, Target, commit_plan, plan_reset
from ottla.config.values import parse_duration_ms
from ottla.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS = (
    click.option("--to-earliest", is_flag=True, help="To the first record."),
    click.option("--to-latest", is_flag=True, help="To the end: only new records are read."),
    click.option("--to-current", is_flag=True, help="To the committed offset; to the end where there is none."),
    click.option("--to-offset", type=int, metavar="N", help="To this offset, or the nearest one that exists."),
    click.option("--shift-by", type=int, metavar="N", help="Forward by N records, or back if N is negative."),
    click.option(
        "--to-datetime",
        metavar="TIME",
        help=f"To the first record since then: {TIME_HELP}.",
    ),
    click.option("--by-duration", metavar="DURATION", help="To the first record of the last PT1H30M, or 1h30m."),
    click.option("--from-file", metavar="CSV", help="To offsets from a file as --export writes it; - reads standard input."),
)


def target_options(function: F) -> F:
    """Add the flags of all scenarios; the function gets them as `**arguments`, for `find_target`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def find_target(arguments: dict[str, Any]) -> Target:
    """The one scenario that the user chose."""
    given = [each for each in Scenario if arguments[each.value] is not None and arguments[each.value] is not False]
    if len(given) != 1:
        flags = [f"--{each.value.replace('_', '-')}" for each in given or Scenario]
        if given:
            raise click.UsageError(f"{' and '.join(flags)} cannot be used together: choose one of them")
        raise click.UsageError(f"say where to reset to: choose one of {', '.join(flags)}")
    scenario = given[0]
    value = arguments[scenario.value]
    if scenario is Scenario.DATETIME:
        return Target(scenario, parse_time_ms(value, "--to-datetime"))
    if scenario is Scenario.DURATION:
        return Target(scenario, _parse_duration_start_ms(value))
    if scenario is Scenario.FILE:
        return Target(scenario, path=value)
    return Target(scenario, value if scenario in (Scenario.OFFSET, Scenario.SHIFT) else 0)


_JAVA_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:[.,]\d{0,9})?)S)?)?", re.ASCII | re.IGNORECASE
)
_UNITS_S = (86_400, 3_600, 60, 1)


def parse_java_duration_ms(text: str) -> int | None:
    """Parse Kafka's `PnDTnHnMnS` as Java does; None if `text` is not a duration."""
    match = _JAVA_DURATION.fullmatch(text)
    if match is None or not any(match.group(2, 4, 5, 6)) or match[3] in ("T", "t"):
        return None
    numbers = [float((part or "0").replace(",", ".")) for part in match.group(2, 4, 5, 6)]
    seconds = sum(number * unit for number, unit in zip(numbers, _UNITS_S, strict=True))
    return round(seconds * 1000) * (-1 if match[1] == "-" else 1)


def _parse_duration_start_ms(text: str) -> int:
    """The time that is this duration before now."""
    duration_ms = parse_java_duration_ms(text)
    if duration_ms is None:
        duration_ms = parse_duration_ms(text)
    if duration_ms is None:
        raise click.UsageError(f"--by-duration does not understand {text!r}: write PT1H30M or P7D, or 1h30m or 7d")
    return current_ms() - duration_ms


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
    )

    async def run(cluster: Cluster) -> Planned:
        planned = await plan_reset(cluster, wanted)
        if execute:
            await commit_plan(cluster, planned.plan)
        return planned

    planned = with_cluster(with_timeout(settings, timeout_ms), run)
    plan, refused = planned.plan, planned.refused
    for sentence in (*planned.notes, *refused):
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


_QUOTED_BELOW = "-"
"""Kafka quotes a text that contains a character below this one …"""
_UNQUOTED_LENGTH_MAX = 24
"""… and a text that is longer than this."""


def to_csv(plan: Mapping[str, Mapping[TopicPartition, int]], with_group: bool) -> list[str]:
    """The lines of a plan, without line ends."""
    lines: list[str] = []
    for group_id, offsets in plan.items():
        group = f"{_text(group_id)}," if with_group else ""
        lines += [f"{group}{_text(each.topic)},{each.partition},{offset}" for each, offset in offsets.items()]
    return lines


def _text(value: str) -> str:
    if len(value) <= _UNQUOTED_LENGTH_MAX and all(character >= _QUOTED_BELOW for character in value):
        return value
    return '"' + value.replace('"', '""') + '"'


def read_plan(path: str, ids: Sequence[str] | None) -> Plan:
    """Read a plan from a file. Lines without a group are for the one group in `ids`."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise click.UsageError(f"{path} is not CSV: {error}") from None
    plan: Plan = {}
    for number, row in enumerate(rows, 1):
        *group, topic, partition, offset = [cell.strip() for cell in row] if len(row) in (3, 4) else ["", "", ""]
        if not topic or not partition.isdigit() or not offset.isdigit():
            raise click.UsageError(
                f"line {number} of {path} is neither topic,partition,offset nor group,topic,partition,offset: {','.join(row)}"
            )
        if not group and (ids is None or len(ids) != 1):
            raise click.UsageError(f"line {number} of {path} does not name a group: write group,topic,partition,offset")
        group_id = group[0] if group else (ids or [""])[0]
        plan.setdefault(group_id, {})[TopicPartition(topic, int(partition))] = int(offset)
    return plan
