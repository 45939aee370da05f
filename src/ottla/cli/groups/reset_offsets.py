"""`ottla groups reset-offsets`: selects groups and partitions, computes the new offsets, and commits them.

The target is one of Kafka's scenarios. Plans are read and written as Kafka's CSV: `topic,partition,offset` for one group,
`group,topic,partition,offset` for several.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.offsets import EARLIEST, LATEST
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_data, print_json, print_padded, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import TIME_HELP, current_ms, parse_time_ms
from ottla.cli.groups.command import (
    find_groups,
    find_partitions,
    group_arguments,
    named_groups,
    parse_topics,
    timeout_option,
    with_timeout,
)
from ottla.cli.groups.describe import GroupOffsets, committed_offsets, describe_groups, find_offsets
from ottla.client.admin.group_offsets import PartitionKey, alter_consumer_group_offsets
from ottla.client.cluster import Cluster
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.config.values import parse_duration_ms
from ottla.errors import GroupIdNotFoundError, KafkaError, OttlaError
from ottla.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])


class Scenario(Enum):
    """Kafka's scenarios; the values are the flags."""

    EARLIEST = "to_earliest"
    LATEST = "to_latest"
    CURRENT = "to_current"
    OFFSET = "to_offset"
    SHIFT = "shift_by"
    DATETIME = "to_datetime"
    DURATION = "by_duration"
    FILE = "from_file"


class Target(NamedTuple):
    """A scenario and its number: an offset, how far to shift, or milliseconds since 1970."""

    scenario: Scenario
    number: int = 0
    path: str = ""


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


Plan = dict[str, dict[TopicPartition, int]]
"""New offsets by group."""

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


_RESETTABLE = ("Empty", "Dead")


class CannotReset(OttlaError):
    """The new offsets cannot be computed."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A requested reset. `ids` None: all groups; `topics` None: all partitions with committed offsets of each group."""

    ids: list[str] | None
    topics: dict[str, list[int] | None] | None
    target: Target
    plan: Plan | None
    execute: bool


async def reset(cluster: Cluster, wanted: Reset) -> tuple[Plan, list[str]]:
    """(new offsets by group, why other groups were skipped). Nothing is committed before all new offsets are computed."""
    groups, refused = await _inactive(cluster, await find_groups(cluster, wanted.ids))
    committed = await committed_offsets(cluster, groups)
    named = await find_partitions(cluster, wanted.topics or {})
    plan: Plan = {}
    for group_id in groups:
        if wanted.plan is not None:
            if group_id not in wanted.plan:
                refused.append(f"the file has no offsets for group {group_id}")
                continue
            plan[group_id] = await _within(cluster, wanted.plan[group_id])
        else:
            partitions = named if wanted.topics is not None else list(committed[group_id])
            plan[group_id] = await _new_offsets(cluster, wanted.target, partitions, committed[group_id])
    if wanted.execute:
        for group_id, new_offsets in plan.items():
            if new_offsets:
                wanted_offsets: dict[PartitionKey, int | OffsetAndMetadata] = dict(new_offsets.items())
                (await alter_consumer_group_offsets(cluster, group_id, wanted_offsets)).raise_first()
    return plan, refused


async def _inactive(cluster: Cluster, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the groups without members, a message for each of the others)."""
    groups: list[str] = []
    refused: list[str] = []
    for group_id, view in (await describe_groups(cluster, ids)).items():
        if isinstance(view, KafkaError):
            if not isinstance(view, GroupIdNotFoundError):
                raise view
            groups.append(group_id)
        elif view.state not in _RESETTABLE:
            refused.append(
                f"the offsets of group {group_id} can only be reset while it has no members, and it is {view.state} now: stop "
                f"them first (`ottla groups describe {group_id} --members` shows them)"
            )
        else:
            groups.append(group_id)
    return groups, refused


async def _new_offsets(
    cluster: Cluster, target: Target, partitions: Sequence[TopicPartition], committed: GroupOffsets
) -> dict[TopicPartition, int]:
    scenario = target.scenario
    if scenario is Scenario.EARLIEST:
        return await _at(cluster, partitions, EARLIEST)
    if scenario is Scenario.LATEST:
        return await _at(cluster, partitions, LATEST)
    if scenario is Scenario.OFFSET:
        return await _within(cluster, dict.fromkeys(partitions, target.number))
    if scenario is Scenario.CURRENT:
        ends = await _at(cluster, [each for each in partitions if each not in committed], LATEST)
        return {each: committed[each].offset if each in committed else ends[each] for each in partitions}
    if scenario is Scenario.SHIFT:
        for each in partitions:
            if each not in committed:
                raise CannotReset(f"the offset of partition {each} cannot be shifted: the group has no committed offset for it")
        return await _within(cluster, {each: committed[each].offset + target.number for each in partitions})
    return await _since(cluster, partitions, target.number)


async def _at(cluster: Cluster, partitions: Iterable[TopicPartition], place: int) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for each, found in (await find_offsets(cluster, partitions, place)).items():
        if found is None:
            raise CannotReset(
                f"partition {each} cannot be asked for its offsets: it does not exist or has no leader "
                f"(`ottla topics describe {each.topic}` shows its partitions)"
            )
        offsets[each] = found.offset
    return offsets


async def _since(cluster: Cluster, partitions: Sequence[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
    """The offset of the first record since a time; the end of a partition that has none."""
    offsets = await _at(cluster, partitions, timestamp_ms)
    late = [each for each, offset in offsets.items() if offset < 0]
    for each in late:
        warn(f"partition {each} has no record since then: using its end")
    return offsets | await _at(cluster, late, LATEST)


async def _within(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """`wanted`, clamped to the offsets that each partition has."""
    first, last = await _at(cluster, wanted, EARLIEST), await _at(cluster, wanted, LATEST)
    offsets: dict[TopicPartition, int] = {}
    for each in sorted(wanted):
        offsets[each] = max(first[each], min(wanted[each], last[each]))
        if offsets[each] != wanted[each]:
            where = "after the end of" if wanted[each] > last[each] else "before the first record of"
            warn(f"offset {wanted[each]} is {where} partition {each}: using {offsets[each]}")
    return offsets
