"""`store_once`: one record batch to its partition's leader in one Produce request, without a producer.

For helpers and tools that write a record now and then, over the connection that they have. Nothing is retried: after a lost
answer the batch may be stored or not.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.admin.requests import raise_refused
from ottla.client.cluster import Cluster
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

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
