"""One batch stored, or the records of some partitions fetched, in one request to their leader: no producer, no consumer.

For helpers and tools that do it now and then, over the connection that they have. `fetch_once` reads uncommitted records, and
keeps no fetch session and no position. `store_once` does not retry: after a lost answer the batch may be stored or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin.requests import raise_refused, refused
from ottla.client.cluster import Cluster, Outcome
from ottla.client_core.consumer.fetched import Fetched, end_of_batches
from ottla.client_core.consumer.subscription import PartitionState, Position
from ottla.ids import TopicPartition, Uuid
from ottla.records.kernels import ConsumerRecord
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

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


ACKS_ALL = -1


class Stored(NamedTuple):
    """Where the first record of the batch is."""

    offset: int
    log_append_time: int | None
    """The broker's time in ms, if the topic has that as its timestamp type."""


async def store_once(
    cluster: Cluster, leader: int, partition: TopicPartition, topic_id: Uuid, batch: bytes | bytearray
) -> Stored:
    """Store a batch; acknowledged by all in-sync replicas. Raises the broker's `KafkaError`."""
    data = TopicProduceData(name=partition.topic, topic_id=topic_id)
    data.partition_data = [PartitionProduceData(index=partition.partition, records=memoryview(batch))]
    request = ProduceRequest(acks=ACKS_ALL, timeout_ms=cluster.settings.request_timeout_ms, topic_data=[data])
    response: ProduceResponse = await cluster.once(leader, request)
    answer = response.responses[0].partition_responses[0]
    raise_refused(answer.error_code, f"a record was not appended to {partition}", answer.error_message)
    return Stored(answer.base_offset, answer.log_append_time_ms if answer.log_append_time_ms >= 0 else None)
