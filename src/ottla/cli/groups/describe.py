"""`ottla groups describe`: offsets, members and states of groups of any kind, as Kafka's lines, as tables or as
JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.offsets import LATEST
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_padded, print_table, print_title, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.command import group_arguments, timeout_option, with_timeout
from ottla.client.admin.group_descriptions import (
    ConsumerGroupDescription,
    MemberDescription,
)
from ottla.client.admin.offsets import FoundOffset
from ottla.client.cluster import Cluster
from ottla.client.group_resets import GroupOffsets, committed_offsets, describe_groups, find_groups, find_offsets
from ottla.client_core.metadata import Node
from ottla.errors import GroupIdNotFoundError, KafkaError
from ottla.errors.texts import counted, listed
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla groups describe billing                   offsets and lag of each partition
  ottla groups describe billing --members --verbose
  ottla groups describe billing --state
  ottla groups describe --all-groups --json | jq '.[].offsets[].lag'
"""


@click.command("describe", epilog=EXAMPLES)
@group_arguments
@click.option("--offsets", is_flag=True, help="Offsets and lag; the default.")
@click.option("--members", is_flag=True, help="The members instead, and how many partitions each has.")
@click.option("--state", is_flag=True, help="The state instead, with coordinator and assignor.")
@click.option("--verbose", is_flag=True, help="More columns: leader epochs, assignments, epochs of the group.")
@timeout_option
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(
    settings: ClientSettings,
    named: tuple[str, ...],
    flagged: tuple[str, ...],
    all_groups: bool,
    offsets: bool,
    members: bool,
    state: bool,
    verbose: bool,
    timeout_ms: int | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Show offsets and lag, members or state of groups.

    GROUPS are ids; the default is all consumer groups. Lag is the number of offsets between the committed offset and the log
    end offset of a partition. The exit code is 1 if a leader does not answer: the lag of its partitions is not known.
    """
    if offsets + members + state > 1:
        raise click.UsageError("--offsets, --members and --state cannot be used together: choose one of them")
    if all_groups and (named or flagged):
        raise click.UsageError("name groups or give --all-groups, not both")
    ids = list(dict.fromkeys((*named, *flagged))) or None
    part = Part.MEMBERS if members else Part.STATE if state else Part.OFFSETS
    shown_parts = [part] if offsets or members or state or not as_json else list(Part)
    errors: dict[TopicPartition, KafkaError] = {}
    described = with_cluster(
        with_timeout(settings, timeout_ms), lambda cluster: _describe(cluster, ids, Part.OFFSETS in shown_parts, errors)
    )
    for partition, error in errors.items():
        warn(f"the end of {partition} is not known: {explain(error)}")
    _warn_about_states([group.view for group in described])
    if as_json:
        print_json([group_json(group, shown_parts) for group in described])
        return 1 if errors else 0
    for group in described:
        if is_for_people(as_json, plain):
            print_tables(group, part, verbose)
        else:
            print_lines(group, part, verbose)
    return 1 if errors else 0


def _warn_about_states(groups: list[ConsumerGroupDescription]) -> None:
    """One line for all idle groups: a cluster may have hundreds."""
    idle = [group.group_id for group in groups if group.state == "Empty"]
    if len(idle) == 1:
        warn(f"group {idle[0]} has no active members")
    elif idle:
        warn(f"{counted(len(idle), 'group')} have no active members: {listed(idle)}")
    for group in groups:
        if group.state not in ("Stable", "Empty"):
            warn(f"group {group.group_id} is rebalancing ({group.state}): this output may be outdated soon")


async def _describe(
    cluster: Cluster, ids: list[str] | None, with_offsets: bool, errors: dict[TopicPartition, KafkaError]
) -> list[DescribedGroup]:
    found: list[ConsumerGroupDescription] = []
    for view in (await describe_groups(cluster, await find_groups(cluster, ids))).values():
        if not isinstance(view, KafkaError):
            found.append(view)
        elif ids is not None or not isinstance(view, GroupIdNotFoundError):
            raise view  # of all groups, one may be deleted between listing and describing
    coordinators = {view.group_id: cluster.brokers.get(view.coordinator) for view in found}
    committed: dict[str, GroupOffsets] = {}
    ends: dict[TopicPartition, FoundOffset | None] = {}
    if with_offsets:
        committed = await committed_offsets(cluster, [view.group_id for view in found])
        assigned = {each for view in found for member in view.members for each in member.assignment}
        ends = await find_offsets(cluster, assigned.union(*committed.values()), LATEST, errors)
    return [
        DescribedGroup(
            view,
            coordinators[view.group_id] or Node(view.coordinator, "unknown", -1),
            offset_rows(view, committed[view.group_id], ends) if with_offsets else [],
        )
        for view in found
    ]


Assignment = dict[str, list[int]]
"""Partitions by topic, both in order."""


def by_topic(partitions: Iterable[TopicPartition]) -> Assignment:
    """The numbers of the partitions of each topic."""
    found: Assignment = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


Column = tuple[str, int, Sequence[object]]
"""Heading, minimum width (0: not padded), cells."""


class Part(Enum):
    """The parts of a group that can be shown."""

    STATE = "state"
    OFFSETS = "offsets"
    MEMBERS = "members"


class OffsetRow(NamedTuple):
    """One partition: committed offset, end offset, and the member that reads it. None means unknown."""

    topic: str
    partition: int
    leader_epoch: int | None
    offset: int | None
    end_offset: int | None
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        return None if self.offset is None or self.end_offset is None else self.end_offset - self.offset


@dataclass(slots=True)
class DescribedGroup:
    """A group with its partitions."""

    view: ConsumerGroupDescription
    coordinator: Node
    offsets: list[OffsetRow]


def offset_rows(
    view: ConsumerGroupDescription, committed: GroupOffsets, ends: Mapping[TopicPartition, FoundOffset | None]
) -> list[OffsetRow]:
    """Partitions with a member first, sorted by how many partitions the member has (most first), then the others."""

    def row(partition: TopicPartition, member: MemberDescription | None) -> OffsetRow:
        known, end = committed.get(partition), ends.get(partition)
        epoch = None if known is None else known.leader_epoch
        offset = None if known is None else known.offset
        return OffsetRow(*partition, epoch, offset, None if end is None else end.offset, member)

    rows = [
        row(partition, member)
        for member in sorted(view.members, key=lambda member: -len(member.assignment))
        for partition in member.assignment
    ]
    assigned = {(each.topic, each.partition) for each in rows}
    return rows + [row(partition, None) for partition in sorted(committed) if partition not in assigned]


def assignment_text(assignment: Iterable[TopicPartition] | None) -> str | None:
    """`orders:0,1;prices:2`."""
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic(assignment or ()).items()) or None


def _offset_columns(group: DescribedGroup, verbose: bool) -> list[Column]:
    rows = group.offsets
    epochs: list[Column] = [("LEADER-EPOCH", 15, [each.leader_epoch for each in rows])] if verbose else []
    members = [each.member for each in rows]
    return [
        ("GROUP", 15, [group.view.group_id] * len(rows)),
        ("TOPIC", 15, [each.topic for each in rows]),
        ("PARTITION", 10, [each.partition for each in rows]),
        *epochs,
        ("CURRENT-OFFSET", 15, [each.offset for each in rows]),
        ("LOG-END-OFFSET", 15, [each.end_offset for each in rows]),
        ("LAG", 15, [each.lag for each in rows]),
        ("CONSUMER-ID", 15, [each and each.member_id for each in members]),
        ("HOST", 15, [each and each.host for each in members]),
        ("CLIENT-ID", 0, [each and each.client_id for each in members]),
    ]


def _member_columns(group: DescribedGroup, verbose: bool) -> list[Column]:
    members = group.view.members
    columns: list[Column] = [
        ("GROUP", 15, [group.view.group_id] * len(members)),
        ("CONSUMER-ID", 15, [each.member_id for each in members]),
    ]
    if any(each.group_instance_id for each in members):
        columns.append(("GROUP-INSTANCE-ID", 17, [each.group_instance_id or "" for each in members]))
    columns += [
        ("HOST", 15, [each.host for each in members]),
        ("CLIENT-ID", 15, [each.client_id for each in members]),
        ("#PARTITIONS", 15, [len(each.assignment) for each in members]),
    ]
    if verbose:
        columns += [
            ("CURRENT-EPOCH", 15, [each.member_epoch for each in members]),
            ("CURRENT-ASSIGNMENT", 20, [assignment_text(each.assignment) for each in members]),
            ("TARGET-EPOCH", 15, [group.view.assignment_epoch] * len(members)),
            ("TARGET-ASSIGNMENT", 20, [assignment_text(each.target_assignment) for each in members]),
        ]
        if {True, False} <= {each.is_classic for each in members}:
            columns.append(("UPGRADED", 0, ["false" if each.is_classic else "true" for each in members]))
    return columns


def _state_columns(group: DescribedGroup, verbose: bool) -> list[Column]:
    view = group.view
    epochs: list[Column] = []
    if verbose:
        epochs = [("GROUP-EPOCH", 15, [view.group_epoch]), ("TARGET-ASSIGNMENT-EPOCH", 25, [view.assignment_epoch])]
    where = group.coordinator
    return [
        ("GROUP", 15, [view.group_id]),
        ("COORDINATOR (ID)", 25, [f"{where.host}:{where.port}  ({where.id})"]),
        ("ASSIGNMENT-STRATEGY", 20, [view.assignor or None]),
        ("STATE", 20, [view.state]),
        *epochs,
        ("#MEMBERS", 0, [len(view.members)]),
    ]


_COLUMNS = {Part.OFFSETS: _offset_columns, Part.MEMBERS: _member_columns, Part.STATE: _state_columns}


def print_lines(group: DescribedGroup, part: Part, verbose: bool) -> None:
    """Print Kafka's own lines, after an empty line; nothing for the offsets of a group that has none."""
    if part is Part.OFFSETS and not group.offsets:
        return
    headings, widths, cells = zip(*_COLUMNS[part](group, verbose), strict=True)
    say()
    print_padded(headings, list(zip(*cells, strict=True)), widths)


_NUMBERS = dict.fromkeys(
    ("PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "#PARTITIONS", "CURRENT-EPOCH", "TARGET-EPOCH"),
    "#",
)
_MARKS: dict[Part, dict[str, str]] = {
    Part.OFFSETS: {**_NUMBERS, "CONSUMER-ID": "~", "HOST": "~", "CLIENT-ID": "~"},
    Part.MEMBERS: {  # no mark for CONSUMER-ID: it is never left out, members could not be told apart
        **_NUMBERS,
        "GROUP-INSTANCE-ID": "~",
        "HOST": "~",
        "CLIENT-ID": "~",
        "CURRENT-ASSIGNMENT": "=",
        "TARGET-ASSIGNMENT": "=",
    },
}
"""The marks of `tables.py`, by Kafka's headings."""


def print_tables(group: DescribedGroup, part: Part, verbose: bool) -> None:
    """Print the state as a title, and `part` below it."""
    view = group.view
    where = group.coordinator
    words = [view.type.lower(), view.state, *([view.assignor] if view.assignor else []), counted(len(view.members), "member")]
    if verbose and view.group_epoch is not None:
        words.append(f"epoch {view.group_epoch}, target assignment of epoch {view.assignment_epoch}")
    title = f"{view.group_id}  ({', '.join(words)}; coordinator {where.id} at {where.host}:{where.port})"
    if part is Part.STATE:
        print_title(title)
        return
    columns = [column for column in _COLUMNS[part](group, verbose) if column[0] != "GROUP"]
    headings = [
        _MARKS[part].get(heading, "") + heading.removeprefix("#").replace("-", " ").capitalize() for heading, _, _ in columns
    ]
    rows = [["-" if cell is None else cell for cell in row] for row in zip(*(cells for _, _, cells in columns), strict=True)]
    print_table(title, headings, rows)


def group_json(group: DescribedGroup, parts: Sequence[Part]) -> dict[str, object]:
    """The state, and the other parts if they are in `parts`."""
    view = group.view
    shown: dict[str, object] = {
        "group": view.group_id,
        "type": view.type,
        "state": view.state,
        "assignor": view.assignor or None,
        "groupEpoch": view.group_epoch,
        "targetAssignmentEpoch": view.assignment_epoch,
        "coordinator": {"id": group.coordinator.id, "host": group.coordinator.host, "port": group.coordinator.port},
        "memberCount": len(view.members),
    }
    if Part.MEMBERS in parts:
        shown["members"] = [
            {
                "memberId": each.member_id,
                "groupInstanceId": each.group_instance_id,
                "clientId": each.client_id,
                "host": each.host,
                "epoch": each.member_epoch,
                "assignment": by_topic(each.assignment),
                "targetAssignment": None if each.target_assignment is None else by_topic(each.target_assignment),
                "upgraded": None if each.is_classic is None else not each.is_classic,
            }
            for each in view.members
        ]
    if Part.OFFSETS in parts:
        shown["offsets"] = [
            {
                "topic": each.topic,
                "partition": each.partition,
                "leaderEpoch": each.leader_epoch,
                "currentOffset": each.offset,
                "logEndOffset": each.end_offset,
                "lag": each.lag,
                "memberId": each.member and each.member.member_id,
            }
            for each in group.offsets
        ]
    return shown
