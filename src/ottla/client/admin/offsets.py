"""Offsets of partitions by place or time, and deletion of the records before an offset (ListOffsets, DeleteRecords)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.checks import INT64_MAX, mapping, member, number, partition
from ottla.client.admin.requests import refused
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.errors import ArgumentError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


class OffsetSpec(IntEnum):
    """A place in a partition. The number takes the place of a timestamp in ListOffsets."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_SINCE_VERSION = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


class IsolationLevel(IntEnum):
    """Which records count: READ_COMMITTED ends at the last stable offset."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class FoundOffset(NamedTuple):
    """An offset; -1 where there is none, such as for a time after the last record. The timestamp is in ms."""

    offset: int
    timestamp: int
    leader_epoch: int | None


async def list_offsets(
    cluster: Cluster,
    partitions: Mapping[TopicPartition | tuple[str, int], OffsetSpec | str | int | datetime],
    *,
    isolation_level: IsolationLevel | str = IsolationLevel.READ_UNCOMMITTED,
) -> Results[TopicPartition, FoundOffset]:
    """The offset of each partition at a place (`"earliest"`, `OffsetSpec.LATEST`) or at a time: ms since 1970 or a datetime."""
    mapping(partitions, "partitions")
    wanted = {partition(key, "partitions"): _timestamp(spec, f"partitions[{key!r}]") for key, spec in partitions.items()}
    isolation = member(IsolationLevel, isolation_level, "isolation_level")
    version = max((_SINCE_VERSION.get(each, 1) for each in wanted.values() if isinstance(each, OffsetSpec)), default=1)

    async def ask(broker_id: int, items: list[TopicPartition]) -> dict[TopicPartition, FoundOffset | KafkaError]:
        topics: dict[str, ListOffsetsTopic] = {}
        for each in items:
            asked = ListOffsetsPartition(partition_index=each.partition, timestamp=wanted[each])
            topics.setdefault(each.topic, ListOffsetsTopic(name=each.topic)).partitions.append(asked)
        link = await cluster.link_to(broker_id)
        if not link.versions.has(ApiKey.LIST_OFFSETS, version):
            text = "the broker is too old to find this kind of offset: use earliest or latest"
            return {each: refused(ErrorCode.UNSUPPORTED_VERSION, f"partition {each}", text) for each in items}
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=list(topics.values()),
            timeout_ms=cluster.settings.request_timeout_ms,
        )
        response: ListOffsetsResponse = await cluster.once(broker_id, request)
        found: dict[TopicPartition, FoundOffset | KafkaError] = {}
        for topic in response.topics:
            for result in topic.partitions:
                key = TopicPartition(topic.name, result.partition_index)
                epoch = result.leader_epoch if result.leader_epoch >= 0 else None
                found[key] = FoundOffset(result.offset, result.timestamp, epoch)
                if result.error_code:
                    found[key] = refused(result.error_code, f"partition {key}")
        return found

    return results_for(wanted, await cluster.by_leader(wanted, ask) if wanted else {})


def _timestamp(spec: OffsetSpec | str | int | datetime, argument: str) -> int:
    if isinstance(spec, OffsetSpec | str):
        return member(OffsetSpec, spec, argument)
    if isinstance(spec, datetime):
        if spec.tzinfo is None:
            raise ArgumentError(f"{argument} is a datetime without a time zone: add tzinfo, such as datetime.UTC")
        return int(spec.timestamp() * 1000)
    return number(spec, argument, 0, INT64_MAX)


async def delete_records(
    cluster: Cluster, offsets: Mapping[TopicPartition | tuple[str, int], int]
) -> Results[TopicPartition, int]:
    """Delete the records before an offset of each partition (-1: all up to the high watermark).

    The values are the partitions' new start offsets.
    """
    mapping(offsets, "offsets")
    wanted = {partition(key, "offsets"): number(offset, f"offsets[{key!r}]", -1, INT64_MAX) for key, offset in offsets.items()}

    async def ask(broker_id: int, items: list[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        topics: dict[str, DeleteRecordsTopic] = {}
        for each in items:
            asked = DeleteRecordsPartition(partition_index=each.partition, offset=wanted[each])
            topics.setdefault(each.topic, DeleteRecordsTopic(name=each.topic)).partitions.append(asked)
        request = DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=cluster.settings.request_timeout_ms)
        response: DeleteRecordsResponse = await cluster.once(broker_id, request)
        found: dict[TopicPartition, int | KafkaError] = {}
        for topic in response.topics:
            for result in topic.partitions:
                key = TopicPartition(topic.name, result.partition_index)
                found[key] = result.low_watermark
                if result.error_code:
                    about = f"the records of partition {key} before offset {wanted.get(key)} were not deleted"
                    found[key] = refused(result.error_code, about)
        return found

    return results_for(wanted, await cluster.by_leader(wanted, ask) if wanted else {})
