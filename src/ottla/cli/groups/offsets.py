"""Offsets of groups: committed ones, and the ends of partitions, for lag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.cli.common.offsets import list_offsets
from ottla.client.admin.group_offsets import list_consumer_group_offsets
from ottla.client.admin.offsets import FoundOffset
from ottla.client.admin.topic_descriptions import describe_topics
from ottla.client.cluster import Cluster
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

GroupOffsets = dict[TopicPartition, OffsetAndMetadata]


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
    found = await list_offsets(cluster, {each: timestamp for each in wanted if each in led})
    if errors is not None:
        errors.update({each: error for each, error in found.items() if isinstance(error, KafkaError)})
    return {each: offset if isinstance(offset := found.get(each), FoundOffset) else None for each in wanted}
