"""`ottla groups describe`: the flags. `views.py` and `offsets.py` ask the cluster, `showing.py` prints."""

from __future__ import annotations

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.offsets import LATEST
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups import showing
from ottla.cli.groups.command import find_groups, group_arguments, timeout_option, with_timeout
from ottla.cli.groups.offsets import GroupOffsets, committed_offsets, find_offsets
from ottla.cli.groups.views import describe_groups
from ottla.client.admin.group_descriptions import ConsumerGroupDescription
from ottla.client.admin.offsets import FoundOffset
from ottla.client.cluster import Cluster
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
    part = showing.Part.MEMBERS if members else showing.Part.STATE if state else showing.Part.OFFSETS
    shown_parts = [part] if offsets or members or state or not as_json else list(showing.Part)
    errors: dict[TopicPartition, KafkaError] = {}
    described = with_cluster(
        with_timeout(settings, timeout_ms), lambda cluster: _describe(cluster, ids, showing.Part.OFFSETS in shown_parts, errors)
    )
    for partition, error in errors.items():
        warn(f"the end of {partition} is not known: {explain(error)}")
    _warn_about_states([group.view for group in described])
    if as_json:
        print_json([showing.as_json(group, shown_parts) for group in described])
        return 1 if errors else 0
    for group in described:
        if is_for_people(as_json, plain):
            showing.print_tables(group, part, verbose)
        else:
            showing.print_lines(group, part, verbose)
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
) -> list[showing.DescribedGroup]:
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
        showing.DescribedGroup(
            view,
            coordinators[view.group_id] or Node(view.coordinator, "unknown", -1),
            showing.offset_rows(view, committed[view.group_id], ends) if with_offsets else [],
        )
        for view in found
    ]
