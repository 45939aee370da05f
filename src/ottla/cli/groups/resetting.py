"""Offset resets: selects groups and partitions, computes the new offsets, and commits them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.cli.common.offsets import EARLIEST, LATEST
from ottla.cli.common.output import warn
from ottla.cli.groups.choosing import find_groups, find_partitions
from ottla.cli.groups.offsets import GroupOffsets, committed_offsets, find_offsets
from ottla.cli.groups.reset_plan import Plan
from ottla.cli.groups.reset_target import Scenario, Target
from ottla.cli.groups.views import describe_groups
from ottla.client.admin.group_offsets import PartitionKey, alter_consumer_group_offsets
from ottla.client.cluster import Cluster
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import GroupIdNotFoundError, KafkaError, OttlaError
from ottla.ids import TopicPartition

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
