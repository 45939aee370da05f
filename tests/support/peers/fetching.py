"""Shortcuts for Fetch requests and for the content of their responses."""

from typing import Any

from tests.support.logs.batches import values_of
from tests.support.nodes.held_partitions import HeldPartitions

from ottla.ids import Uuid
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

MEGABYTE = 1 << 20


def part(index: int = 0, offset: int = 0, max_bytes: int = MEGABYTE, **more: Any) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **more)


def fetch_of(topic: str | Uuid, *parts: FetchPartition, **more: Any) -> FetchRequest:
    wanted = FetchTopic(partitions=list(parts))
    if isinstance(topic, str):
        wanted.topic = topic
    else:
        wanted.topic_id = topic
    return FetchRequest(**({"max_wait_ms": 500, "min_bytes": 1} | more), topics=[wanted])


def found(handled: Any) -> list[PartitionData]:
    """The partitions of the response."""
    assert isinstance(handled, FetchResponse), handled
    assert handled.error_code == 0
    return [data for entry in handled.responses for data in entry.partitions]


def bytes_of(data: PartitionData) -> bytes:
    records: Any = data.records
    return records if isinstance(records, bytes) else records.read()


def values(handled: Any) -> list[list[bytes | None]]:
    return [values_of(bytes_of(data)) for data in found(handled)]


async def node(**configs: object) -> HeldPartitions:
    held = await HeldPartitions.open()
    await held.make_topic("t", 3, {key.replace("_", "."): value for key, value in configs.items()})
    return held
