"""Stores records for pages: in batches, acknowledged by all in-sync replicas, over the connections that the console has.

A batch that a broker refuses because it does not lead the partition any more is sent again. One whose answer is lost is not:
it may be stored, and the error says so.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.once import store_once
from ottla.console.records import Topic, find_topic
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.records.builder import build_produce_batch
from ottla.records.kernels import partition_of_key

BATCH_BYTES: Final = 500_000
ATTEMPTS: Final = 5
PAUSE_S: Final = 0.3
_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
    }
)
"""Nothing was stored: the partition has another leader."""


class Outgoing(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    """None: by the key, as Kafka's producers choose it; without a key, any."""
    timestamp: int | None = None
    """None: now."""


class Place(NamedTuple):
    """Where a record is."""

    partition: int
    offset: int


class SendFailed(OttlaError):
    """Not all records were stored."""


async def send(cluster: Cluster, name: str, many: Sequence[Outgoing]) -> list[Place]:
    """Store records; where the first of each batch is. Raises `SendFailed`, which says how many are stored."""
    topic = await find_topic(cluster, name)
    places: list[Place] = []
    stored = 0
    for partition, batch in _batches(topic, many):
        try:
            places.append(await _store(cluster, topic, partition, batch))
        except (KafkaError, TimeoutError) as error:
            lost = isinstance(error, TimeoutError) or error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
            more = f"; {len(batch)} more may be stored or not" if lost else ""
            raise SendFailed(
                f"{stored} of {len(many)} records were sent to {name}{more}: {error or 'no answer in time'}"
            ) from None
        stored += len(batch)
    return places


def _batches(topic: Topic, many: Sequence[Outgoing]) -> list[tuple[int, list[Outgoing]]]:
    """The records of each partition in order, cut into batches."""
    keyless = random.choice(sorted(topic.leaders) or [0])
    done: list[tuple[int, list[Outgoing]]] = []
    filling: dict[int, tuple[int, list[Outgoing]]] = {}
    for each in many:
        partition = each.partition
        if partition is None:
            partition = keyless if each.key is None else partition_of_key(each.key, topic.partition_count)
        if partition not in topic.leaders:
            exists = partition < topic.partition_count
            why = "has no leader now" if exists else f"does not exist: the topic has {topic.partition_count}"
            raise SendFailed(f"nothing was sent: partition {partition} of {topic.name} {why}")
        size = len(each.key or b"") + len(each.value or b"") + sum(len(n) + len(v or b"") for n, v in each.headers) + 32
        full, batch = filling.get(partition, (0, []))
        if batch and full + size > BATCH_BYTES:
            done.append((partition, batch))
            full, batch = 0, []
        batch.append(each)
        filling[partition] = full + size, batch
    return [*done, *((partition, batch) for partition, (_, batch) in filling.items())]


async def _store(cluster: Cluster, topic: Topic, partition: int, many: list[Outgoing]) -> Place:
    now_ms = int(time.time() * 1000)
    rows = [(now_ms if each.timestamp is None else each.timestamp, each.key, each.value, each.headers) for each in many]
    batch = build_produce_batch(rows)
    for attempt in range(ATTEMPTS):
        try:
            stored = await store_once(
                cluster, topic.leaders[partition], TopicPartition(topic.name, partition), topic.id, bytearray(batch)
            )
            return Place(partition, stored.offset)
        except KafkaError as error:
            if error.code not in _MOVED or attempt == ATTEMPTS - 1:
                raise
        await asyncio.sleep(PAUSE_S)
        topic = await find_topic(cluster, topic.name)
    raise AssertionError
