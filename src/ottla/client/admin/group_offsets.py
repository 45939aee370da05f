"""Committed offsets of groups: list, alter, delete (OffsetFetch, OffsetCommit, OffsetDelete).

OffsetFetch and OffsetCommit are sent in version 9 at most: later versions name topics by id, and a group may have offsets of
topics that were deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.checks import INT64_MAX, mapping, number, partition, partitions, text
from ottla.client.admin.requests import ask_broker_until, group_refused, refused
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster, topic_error
from ottla.client_core.coordinators import CoordinatorKind
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import KafkaError, UnsupportedVersionError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

_NAMES_UNTIL_VERSION = 9
_COORDINATOR_ERRORS = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)


PartitionKey = TopicPartition | tuple[str, int]
GroupOffsets = dict[TopicPartition, OffsetAndMetadata | None]


async def list_consumer_group_offsets(
    cluster: Cluster,
    groups: Iterable[str] | Mapping[str, Iterable[PartitionKey] | None],
    *,
    require_stable: bool = False,
) -> Results[str, GroupOffsets]:
    """The committed offsets of many groups: a list of group ids, or a mapping to the partitions wanted (None: all).

    A partition that was asked for and has no committed offset is None. With `require_stable` the call waits for open
    transactions that hold offsets.
    """
    if isinstance(groups, str):
        raise TypeError(f"groups must be a list or a mapping, not the single value {groups!r}: write [{groups!r}]")
    asked = groups if isinstance(groups, Mapping) else dict.fromkeys(groups)
    wanted = {
        text(group_id, "groups"): None if some is None else partitions(some, f"groups[{group_id!r}]")
        for group_id, some in asked.items()
    }

    async def ask(broker_id: int, ids: list[str]) -> dict[str, GroupOffsets | KafkaError]:
        entries = [OffsetFetchRequestGroup(group_id=each, topics=_topics(wanted[each])) for each in ids]
        request = OffsetFetchRequest(groups=entries, require_stable=require_stable)
        try:
            response: OffsetFetchResponse = await ask_broker_until(cluster, broker_id, request, _NAMES_UNTIL_VERSION)
            return {each.group_id: _offsets(each.group_id, each.error_code, each.topics) for each in response.groups}
        except UnsupportedVersionError:  # before v8: one group in a request
            found = {}
            for each in ids:
                one = OffsetFetchRequest(group_id=each, topics=_old_topics(wanted[each]), require_stable=require_stable)
                response = await ask_broker_until(cluster, broker_id, one, _NAMES_UNTIL_VERSION)
                found[each] = _offsets(each, response.error_code, response.topics)
            return found

    return results_for(wanted, await cluster.by_coordinator(CoordinatorKind.GROUP, wanted, ask))


def _topics(wanted: list[TopicPartition] | None) -> list[OffsetFetchRequestTopics] | None:
    if wanted is None:
        return None
    found: dict[str, OffsetFetchRequestTopics] = {}
    for topic, index in wanted:
        found.setdefault(topic, OffsetFetchRequestTopics(name=topic)).partition_indexes.append(index)
    return list(found.values())


def _old_topics(wanted: list[TopicPartition] | None) -> list[OffsetFetchRequestTopic] | None:
    if wanted is None:
        return None
    found: dict[str, OffsetFetchRequestTopic] = {}
    for topic, index in wanted:
        found.setdefault(topic, OffsetFetchRequestTopic(name=topic)).partition_indexes.append(index)
    return list(found.values())


def _offsets(group_id: str, code: int, topics: Iterable[Any]) -> GroupOffsets | KafkaError:
    if code:
        return group_refused(code, group_id, f"the offsets of group {group_id}")
    found: GroupOffsets = {}
    for topic in topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                return refused(each.error_code, f"the offset of group {group_id} for partition {key}")
            epoch = each.committed_leader_epoch if each.committed_leader_epoch >= 0 else None
            is_there = each.committed_offset >= 0
            found[key] = OffsetAndMetadata(each.committed_offset, each.metadata or "", epoch) if is_there else None
    return dict(sorted(found.items()))


async def alter_consumer_group_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[PartitionKey, int | OffsetAndMetadata]
) -> Results[TopicPartition, None]:
    """Set the committed offsets of a group without members: `{("orders", 0): 42}`. The group is created if need be."""
    text(group_id, "group_id")
    mapping(offsets, "offsets")
    wanted = {partition(key, "offsets"): _commit(key, offset) for key, offset in offsets.items()}

    async def ask(broker_id: int, ids: list[str]) -> dict[str, dict[TopicPartition, KafkaError | None] | KafkaError]:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for key, offset in wanted.items():
            entry = OffsetCommitRequestPartition(
                partition_index=key.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
            topics.setdefault(key.topic, OffsetCommitRequestTopic(name=key.topic)).partitions.append(entry)
        request = OffsetCommitRequest(group_id=group_id, topics=list(topics.values()))
        response: OffsetCommitResponse = await ask_broker_until(cluster, broker_id, request, _NAMES_UNTIL_VERSION)
        found = _changed(response.topics, f"the offset of group {group_id} for partition %s was not changed")
        # A coordinator that has moved or is loading says so for each partition: then the group is located and asked again.
        moved = [error for error in found.values() if error is not None and error.code in _COORDINATOR_ERRORS]
        return {group_id: moved[0] if moved else found}

    return await _about_one_group(cluster, group_id, list(wanted), ask)


def _commit(key: PartitionKey, offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    found = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
    number(found.offset, f"offsets[{key!r}]", 0, INT64_MAX)
    return found


async def delete_consumer_group_offsets(
    cluster: Cluster, group_id: str, wanted_partitions: Iterable[PartitionKey]
) -> Results[TopicPartition, None]:
    """Delete committed offsets of a group. Its members must not subscribe to the topics."""
    text(group_id, "group_id")
    wanted = partitions(wanted_partitions, "wanted_partitions")

    async def ask(broker_id: int, ids: list[str]) -> dict[str, dict[TopicPartition, KafkaError | None] | KafkaError]:
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for topic, index in wanted:
            entry = OffsetDeleteRequestPartition(partition_index=index)
            topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic)).partitions.append(entry)
        request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
        response: OffsetDeleteResponse = await cluster.once(broker_id, request)
        if response.error_code:
            about = f"the offsets of group {group_id} were not deleted"
            return {group_id: group_refused(response.error_code, group_id, about)}
        return {group_id: _changed(response.topics, f"the offset of group {group_id} for partition %s was not deleted")}

    return await _about_one_group(cluster, group_id, wanted, ask)


def _changed(topics: Iterable[Any], about: str) -> dict[TopicPartition, KafkaError | None]:
    found: dict[TopicPartition, KafkaError | None] = {}
    for topic in topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            found[key] = _refused(each.error_code, key, about) if each.error_code else None
    return found


def _refused(code: int, key: TopicPartition, about: str) -> KafkaError:
    return topic_error(code, *key) if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else refused(code, about % (key,))


async def _about_one_group(
    cluster: Cluster, group_id: str, wanted: list[TopicPartition], ask: Any
) -> Results[TopicPartition, None]:
    if not wanted:
        return Results({})
    found = await cluster.by_coordinator(CoordinatorKind.GROUP, [group_id], ask)
    outcome: dict[TopicPartition, KafkaError | None] | KafkaError = found[group_id]
    if isinstance(outcome, KafkaError):
        raise outcome
    return results_for(wanted, outcome)
