"""Requests about offsets of groups: committed offsets, ends of partitions, and commits on behalf of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.coordinators import CoordinatorKind, by_coordinator
from ottla.cli.common.offsets import FoundOffset, list_offsets
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.wire.apis import ApiKey
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

_MANY_GROUPS_SINCE_VERSION = 8
_NAMES_UNTIL_VERSION = 9
"""Later versions identify topics by id. An id could not be shown: a group may have offsets of a topic that was deleted."""


class Committed(NamedTuple):
    """A committed offset; the leader epoch is -1 if the consumer did not send it."""

    offset: int
    leader_epoch: int
    metadata: str


GroupOffsets = dict[TopicPartition, Committed]


async def committed_offsets(cluster: Cluster, ids: Iterable[str]) -> dict[str, GroupOffsets | KafkaError]:
    """The committed offsets of each group, or the error that its coordinator answered."""

    async def ask(broker_id: int, wanted: list[str]) -> dict[str, GroupOffsets | KafkaError]:
        link = await cluster.link_to(broker_id)
        version = min(link.versions.newest(ApiKey.OFFSET_FETCH), _NAMES_UNTIL_VERSION)
        if version >= _MANY_GROUPS_SINCE_VERSION:
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in wanted])
            response: OffsetFetchResponse = await link.request(request, version=version)
            return {group.group_id: _take(group.group_id, group.error_code, group.topics) for group in response.groups}
        found: dict[str, GroupOffsets | KafkaError] = {}
        for each in wanted:
            response = await link.request(OffsetFetchRequest(group_id=each, topics=None), version=version)
            found[each] = _take(each, response.error_code, response.topics)
        return found

    return await by_coordinator(cluster, CoordinatorKind.GROUP, ids, ask)


def _take(group_id: str, error_code: int, topics: Iterable[object]) -> GroupOffsets | KafkaError:
    if error_code:
        return refusal(error_code, f"the offsets of group {group_id}")
    found: GroupOffsets = {}
    for topic in topics:
        for each in topic.partitions:  # type: ignore[attr-defined]  # two classes of the same shape, for old and new versions
            partition = TopicPartition(topic.name, each.partition_index)  # type: ignore[attr-defined]  # as above
            if each.error_code:
                return refusal(each.error_code, f"the offset of group {group_id} for partition {partition}")
            if each.committed_offset >= 0:
                found[partition] = Committed(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
    return dict(sorted(found.items()))


async def find_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], timestamp: int
) -> dict[TopicPartition, FoundOffset | None]:
    """The offset of each partition at a place or time; None if it has no leader or does not exist.

    Asks with read_uncommitted: the end is the high watermark, also while a transaction is open. Kafka computes lag so, too.
    """
    wanted = sorted(set(partitions))
    topics = {topic.name: topic for topic in (await cluster.metadata(sorted({each.topic for each in wanted}))).topics}
    led = {
        TopicPartition(name or "", each.partition_index)
        for name, topic in topics.items()
        for each in topic.partitions
        if each.leader_id in cluster.brokers
    }
    found = await list_offsets(cluster, {each: timestamp for each in wanted if each in led})
    return {each: offset if isinstance(offset := found.get(each), FoundOffset) else None for each in wanted}


async def commit_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group without members. Raises a `KafkaError` that names the partition that was refused."""

    async def ask(broker_id: int, wanted: list[str]) -> dict[str, KafkaError | None]:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for each, offset in sorted(offsets.items()):
            partition = OffsetCommitRequestPartition(
                partition_index=each.partition, committed_offset=offset, committed_metadata=""
            )
            topics.setdefault(each.topic, OffsetCommitRequestTopic(name=each.topic)).partitions.append(partition)
        link = await cluster.link_to(broker_id)
        version = min(link.versions.newest(ApiKey.OFFSET_COMMIT), _NAMES_UNTIL_VERSION)
        request = OffsetCommitRequest(group_id=group_id, topics=list(topics.values()))
        response: OffsetCommitResponse = await link.request(request, version=version)
        for topic in response.topics:
            for result in topic.partitions:
                if result.error_code:
                    about = (
                        f"the offset of group {group_id} for partition {topic.name}-{result.partition_index} was not changed"
                    )
                    return {group_id: refusal(result.error_code, about)}
        return {group_id: None}

    outcome = (await by_coordinator(cluster, CoordinatorKind.GROUP, [group_id], ask))[group_id]
    if isinstance(outcome, KafkaError):
        raise outcome
