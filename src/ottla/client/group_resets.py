"""New offsets for groups: where a group shall go on reading, computed first, committed second.

`ottla groups reset-offsets` and the console's pages show the computed offsets before anything is changed. A group must have no
members while its offsets are changed; what would be reset in others is not computed, and why is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ottla.client.admin.group_descriptions import (
    ConsumerGroupDescription,
    MemberDescription,
    describe_classic_groups,
    describe_consumer_groups,
)
from ottla.client.admin.group_offsets import (
    PartitionKey,
    alter_consumer_group_offsets,
    delete_consumer_group_offsets,
    list_consumer_group_offsets,
)
from ottla.client.admin.groups import list_consumer_groups
from ottla.client.admin.offsets import FoundOffset, OffsetSpec, list_offsets
from ottla.client.admin.topic_descriptions import describe_topics
from ottla.client.cluster import Cluster, topic_error
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import GroupIdNotFoundError, InconsistentGroupProtocolError, KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

GroupOffsets = dict[TopicPartition, OffsetAndMetadata]
Plan = dict[str, dict[TopicPartition, int]]
"""New offsets by group."""
Deletions = dict[TopicPartition, KafkaError | None]
"""Errors by partition, None for success. Partition -1 means a topic whose partitions are unknown."""

RESETTABLE = ("Empty", "Dead")


class Scenario(Enum):
    """Kafka's scenarios; the values are the flags of its tool."""

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


class CannotReset(OttlaError):
    """The new offsets cannot be computed."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A requested reset. `ids` None: all groups; `topics` None: all partitions with committed offsets of each group."""

    ids: list[str] | None
    topics: Mapping[str, list[int] | None] | None
    target: Target
    plan: Plan | None = None
    """The new offsets, if they are given."""


@dataclass(slots=True)
class Planned:
    """The new offsets, and what to know about them."""

    plan: Plan
    refused: list[str] = field(default_factory=list)
    """Why other groups were skipped."""
    notes: list[str] = field(default_factory=list)
    """Where an offset is not the one that was asked for."""


async def plan_reset(cluster: Cluster, wanted: Reset) -> Planned:
    """The new offsets of groups. Nothing is changed: `commit_plan` does that."""
    groups, refused = await _inactive(cluster, await find_groups(cluster, wanted.ids))
    found = Planned({}, refused)
    committed = await committed_offsets(cluster, groups)
    named = await find_partitions(cluster, wanted.topics or {})
    for group_id in groups:
        if wanted.plan is not None:
            if group_id not in wanted.plan:
                refused.append(f"the file has no offsets for group {group_id}")
                continue
            found.plan[group_id] = await _within(cluster, wanted.plan[group_id], found.notes)
        else:
            partitions = named if wanted.topics is not None else list(committed[group_id])
            new = await _new_offsets(cluster, wanted.target, partitions, committed[group_id], found.notes)
            found.plan[group_id] = new
    return found


async def plan_move(
    cluster: Cluster, source: str, target: str, renamed: Mapping[str, str], topics: Iterable[str] = ()
) -> Planned:
    """The offsets of one group for another, or for other topics (`renamed`: new names by old ones), partition by partition.

    `topics` are those to take (none: all that the group has committed). Offsets that the other topic does not have are clamped.
    """
    refused = (await _inactive(cluster, [target]))[1]
    if refused:
        return Planned({}, refused)
    wanted = set(topics)
    offsets = {
        TopicPartition(renamed.get(each.topic, each.topic), each.partition): one.offset
        for each, one in (await committed_offsets(cluster, [source]))[source].items()
        if not wanted or each.topic in wanted
    }
    found = Planned({target: {}})
    described = await describe_topics(cluster, sorted({each.topic for each in offsets}))
    known = {TopicPartition(each.name, one.partition) for each in described.raise_first().values() for one in each.partitions}
    for each in sorted(offsets.keys() - known):
        found.notes.append(f"topic {each.topic} has no partition {each.partition}: its offset is left out")
    inside = {each: offset for each, offset in offsets.items() if each in known}
    found.plan[target] = await _within(cluster, inside, found.notes)
    return found


async def commit_plan(cluster: Cluster, plan: Plan) -> None:
    """Commit the new offsets. Raises the first error."""
    for group_id, new_offsets in plan.items():
        if new_offsets:
            offsets: dict[PartitionKey, int | OffsetAndMetadata] = dict(new_offsets.items())
            (await alter_consumer_group_offsets(cluster, group_id, offsets)).raise_first()


async def delete_offsets(cluster: Cluster, group_id: str, topics: Mapping[str, list[int] | None]) -> Deletions:
    """Delete a group's committed offsets of topics (None: all partitions) that none of its members subscribes to."""
    whole = await describe_topics(cluster, [name for name, numbers in topics.items() if numbers is None])
    results: Deletions = {TopicPartition(str(name), -1): error for name, error in whole.errors.items()}
    wanted = [TopicPartition(name, number) for name, numbers in topics.items() for number in numbers or ()]
    wanted += [TopicPartition(topic.name, each.partition) for topic in whole.values_found.values() for each in topic.partitions]
    deleted = await delete_consumer_group_offsets(cluster, group_id, wanted)
    results |= {each: deleted.errors.get(each) for each in deleted}
    return dict(sorted(results.items()))


# Groups, partitions and offsets


async def find_groups(cluster: Cluster, ids: list[str] | None) -> list[str]:
    """The named groups, or all consumer groups of the cluster if `ids` is None."""
    return ids if ids is not None else [each.group_id for each in await list_consumer_groups(cluster)]


async def find_partitions(cluster: Cluster, topics: Mapping[str, list[int] | None]) -> list[TopicPartition]:
    """The partitions of topics (None: all). Raises if a topic or partition does not exist."""
    found: list[TopicPartition] = []
    described = (await describe_topics(cluster, topics)).raise_first()
    for name, numbers in topics.items():
        known = {each.partition for each in described[name].partitions}
        for number in sorted(known if numbers is None else set(numbers)):
            if number not in known:
                raise topic_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, number)
            found.append(TopicPartition(name, number))
    return sorted(found)


async def committed_offsets(cluster: Cluster, ids: Sequence[str]) -> dict[str, GroupOffsets]:
    """The committed offsets of each group. Raises the first error."""
    results = (await list_consumer_group_offsets(cluster, sorted(ids))).raise_first()
    return {
        group_id: {each: committed for each, committed in offsets.items() if committed is not None}
        for group_id, offsets in results.items()
    }


async def find_offsets(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    timestamp: int,
    errors: dict[TopicPartition, KafkaError] | None = None,
) -> dict[TopicPartition, FoundOffset | None]:
    """The offset of each partition at a place or time; None if it has no leader or does not exist, or if that does not answer.

    `errors` gets why a leader gave no offset.

    Asks with read_uncommitted: the end is the high watermark, also while a transaction is open. Kafka computes lag so, too.
    """
    wanted = sorted(set(partitions))
    described = await describe_topics(cluster, sorted({each.topic for each in wanted}))
    topics = [described[name] for name in described if name not in described.errors]
    led = {(topic.name, each.partition) for topic in topics for each in topic.partitions if each.leader is not None}
    place = OffsetSpec(timestamp) if timestamp < 0 else timestamp
    results = await list_offsets(cluster, {each: place for each in wanted if each in led})
    if errors is not None:
        errors.update(results.errors)
    found = results.values_found
    _ = results.errors  # a partition that gave none has None
    return {each: found.get(each) for each in wanted}


async def describe_groups(cluster: Cluster, ids: Iterable[str]) -> dict[str, ConsumerGroupDescription | KafkaError]:
    """Each of the groups, or the error that its coordinator answered. Members of other than consumer groups own nothing."""
    results = await describe_consumer_groups(cluster, sorted(ids))
    found: dict[str, ConsumerGroupDescription | KafkaError] = {**results.values_found, **results.errors}
    others = [each for each, error in results.errors.items() if isinstance(error, InconsistentGroupProtocolError)]
    for group_id, group in (await describe_classic_groups(cluster, others)).items() if others else ():
        members = tuple(MemberDescription(*each[:4], assignment=()) for each in group.members)
        found[group_id] = ConsumerGroupDescription(group_id, "Classic", group.state, group.assignor, group.coordinator, members)
    return dict(sorted(found.items()))


# Scenarios


async def _inactive(cluster: Cluster, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the groups without members, a message for each of the others)."""
    groups: list[str] = []
    refused: list[str] = []
    for group_id, view in (await describe_groups(cluster, ids)).items():
        if isinstance(view, KafkaError):
            if not isinstance(view, GroupIdNotFoundError):
                raise view
            groups.append(group_id)
        elif view.state not in RESETTABLE:
            refused.append(
                f"the offsets of group {group_id} can only be reset while it has no members, and it is {view.state} now: stop "
                f"them first (`ottla groups describe {group_id} --members` shows them)"
            )
        else:
            groups.append(group_id)
    return groups, refused


async def _new_offsets(
    cluster: Cluster, target: Target, partitions: Sequence[TopicPartition], committed: GroupOffsets, notes: list[str]
) -> dict[TopicPartition, int]:
    scenario = target.scenario
    if scenario is Scenario.EARLIEST:
        return await _at(cluster, partitions, OffsetSpec.EARLIEST)
    if scenario is Scenario.LATEST:
        return await _at(cluster, partitions, OffsetSpec.LATEST)
    if scenario is Scenario.OFFSET:
        return await _within(cluster, dict.fromkeys(partitions, target.number), notes)
    if scenario is Scenario.CURRENT:
        ends = await _at(cluster, [each for each in partitions if each not in committed], OffsetSpec.LATEST)
        return {each: committed[each].offset if each in committed else ends[each] for each in partitions}
    if scenario is Scenario.SHIFT:
        for each in partitions:
            if each not in committed:
                raise CannotReset(f"the offset of partition {each} cannot be shifted: the group has no committed offset for it")
        return await _within(cluster, {each: committed[each].offset + target.number for each in partitions}, notes)
    return await _since(cluster, partitions, target.number, notes)


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


async def _since(
    cluster: Cluster, partitions: Sequence[TopicPartition], timestamp_ms: int, notes: list[str]
) -> dict[TopicPartition, int]:
    """The offset of the first record since a time; the end of a partition that has none."""
    offsets = await _at(cluster, partitions, timestamp_ms)
    late = [each for each, offset in offsets.items() if offset < 0]
    notes += [f"partition {each} has no record since then: using its end" for each in late]
    return offsets | await _at(cluster, late, OffsetSpec.LATEST)


async def _within(cluster: Cluster, wanted: Mapping[TopicPartition, int], notes: list[str]) -> dict[TopicPartition, int]:
    """`wanted`, clamped to the offsets that each partition has."""
    first, last = await _at(cluster, wanted, OffsetSpec.EARLIEST), await _at(cluster, wanted, OffsetSpec.LATEST)
    offsets: dict[TopicPartition, int] = {}
    for each in sorted(wanted):
        offsets[each] = max(first[each], min(wanted[each], last[each]))
        if offsets[each] != wanted[each]:
            where = "after the end of" if wanted[each] > last[each] else "before the first record of"
            notes.append(f"offset {wanted[each]} is {where} partition {each}: using {offsets[each]}")
    return offsets
