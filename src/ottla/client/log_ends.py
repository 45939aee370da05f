"""Where a broker's own replicas end, whether it leads the partitions or not (ListOffsets as the debugging consumer).

Not a function of Admin: Kafka's has none like it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.cluster import Cluster
from ottla.ids import TopicPartition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_DEBUGGING_CONSUMER = -2
"""The replica id that followers answer, too."""
_LATEST = -1


async def log_ends(cluster: Cluster, broker_id: int, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the logs of a broker's own replicas end, whether it leads them or not. Refused partitions are left out."""
    topics: dict[str, ListOffsetsTopic] = {}
    for each in partitions:
        asked = ListOffsetsPartition(partition_index=each.partition, timestamp=_LATEST)
        topics.setdefault(each.topic, ListOffsetsTopic(name=each.topic)).partitions.append(asked)
    request = ListOffsetsRequest(
        replica_id=_DEBUGGING_CONSUMER, topics=list(topics.values()), timeout_ms=cluster.settings.request_timeout_ms
    )
    response: ListOffsetsResponse = await cluster.once(broker_id, request)
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in response.topics
        for each in topic.partitions
        if not each.error_code
    }
