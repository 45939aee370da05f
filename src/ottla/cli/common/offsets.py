"""ListOffsets: offsets of partitions by place (earliest, latest, …) or by timestamp, asked from their leaders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.cli.common.cluster import Cluster, refusal
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.link import NoCommonVersion
from ottla.wire.apis import ApiKey
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6

PLACES = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
    "earliest-pending-upload": EARLIEST_PENDING_UPLOAD,
}
"""Places by name. The negative number takes the place of a timestamp in ListOffsets."""

_SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


class FoundOffset(NamedTuple):
    """An offset; -1 where there is none, such as for a time after the last record."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], read_committed: bool = False
) -> dict[TopicPartition, FoundOffset | KafkaError]:
    """The offset of each partition at its timestamp or place, or the error that its leader answered."""
    version = max((_SINCE_VERSION.get(timestamp, 1) for timestamp in wanted.values()), default=1)

    async def ask(broker_id: int, partitions: list[TopicPartition]) -> dict[TopicPartition, FoundOffset | KafkaError]:
        topics: dict[str, ListOffsetsTopic] = {}
        for topic, index in partitions:
            asked = ListOffsetsPartition(partition_index=index, timestamp=wanted[TopicPartition(topic, index)])
            topics.setdefault(topic, ListOffsetsTopic(name=topic)).partitions.append(asked)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1 if read_committed else 0,
            topics=list(topics.values()),
            timeout_ms=cluster.settings.request_timeout_ms,
        )
        link = await cluster.link_to(broker_id)
        if not link.versions.has(ApiKey.LIST_OFFSETS, version):
            raise NoCommonVersion(
                link.address, f"{link.address} is too old to find this kind of offset: use earliest or latest"
            )
        response: ListOffsetsResponse = await link.request(request)
        return {
            TopicPartition(topic.name, each.partition_index): (
                refusal(each.error_code, f"partition {topic.name}-{each.partition_index}")
                if each.error_code
                else FoundOffset(each.offset, each.timestamp, each.leader_epoch)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return await cluster.by_leader(wanted, ask)
