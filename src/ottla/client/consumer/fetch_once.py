"""`fetch_once`: the records of some partitions from their leader in one Fetch request, without a consumer.

For helpers and tools that read now and then, over the connection that they have. It reads uncommitted records, keeps no fetch
session and no position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin.requests import refused
from ottla.client.cluster import Cluster, Outcome
from ottla.client_core.consumer.fetched import Fetched, end_of_batches
from ottla.client_core.consumer.subscription import PartitionState, Position
from ottla.ids import TopicPartition, Uuid
from ottla.records.kernels import ConsumerRecord
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

MAX_BYTES = 16 * 1024 * 1024
_NO_SESSION = -1
_ALL = 1 << 62


class FetchedPartition(NamedTuple):
    """The records from an offset on, the offset after them, and the high watermark."""

    records: list[ConsumerRecord]
    next_offset: int
    high_watermark: int


async def fetch_once(
    cluster: Cluster, leader: int, positions: Mapping[TopicPartition, int], topic_ids: Mapping[str, Uuid], wait_ms: int = 0
) -> dict[TopicPartition, Outcome[FetchedPartition]]:
    """Fetch from `positions` on, or the error of each partition. Waits up to `wait_ms` on the broker for the first record."""
    topics: dict[str, FetchTopic] = {}
    for (topic, index), offset in positions.items():
        asked = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MAX_BYTES)
        topics.setdefault(topic, FetchTopic(topic=topic, topic_id=topic_ids[topic])).partitions.append(asked)
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=MAX_BYTES, session_epoch=_NO_SESSION)
    request.topics = list(topics.values())
    response: FetchResponse = await cluster.ask_broker(leader, request)
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    found: dict[TopicPartition, Outcome[FetchedPartition]] = {}
    for entry in response.responses:
        for data in entry.partitions:
            key = TopicPartition(entry.topic or names[entry.topic_id], data.partition_index)
            if data.error_code:
                found[key] = refused(data.error_code, f"{key} cannot be read")
            else:
                found[key] = _decoded(key, positions[key], data)
    return found


def _decoded(key: TopicPartition, offset: int, data: PartitionData) -> FetchedPartition:
    state = PartitionState(key)
    state.position = Position(offset)
    records: list[ConsumerRecord] = []
    view = memoryview(data.records or b"")  # type: ignore[arg-type]  # decoding gives a view, never a file range
    end, next_offset, _ = end_of_batches(view)
    if end:
        Fetched(state, view, end, offset, None).take(records, _ALL)
    return FetchedPartition(records, max(offset, next_offset), data.high_watermark)
