"""The loop of `ottla perf latency`: sends a record, waits until it is stored, and polls until a consumer has it, one at a time.

Producer and consumer share one event loop, so that no thread has to be woken in between.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.cli.common.clients import ClientConfig
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster import Cluster
from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.producer.asynchronous import Producer
from ottla.client.world import ClientWorld
from ottla.errors import OttlaError
from ottla.ids import TopicPartition

POLL_S = 60.0
REPORT_EVERY = 1000

Bytes = bytes | None


@dataclass(frozen=True, slots=True)
class TripPlan:
    """What to send. Sizes are in bytes."""

    topic: str
    records: int
    record_size: int
    key_size: int = 0
    """0: no key."""
    headers: int = 0
    header_key_size: int = 0
    header_size: int = 0
    """-1: null."""


class TripFailed(OttlaError):
    """A record did not come back as it was sent."""


async def create_if_missing(cluster: Cluster, topic: str, say: Callable[[str], object]) -> None:
    """Create the topic with one partition if there is none, as Kafka's tool."""
    if topic in await cluster.topics():
        return
    say(f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
    (await create_topics(cluster, [NewTopic(topic, 1, 1)])).raise_first()


async def measure(
    plan: TripPlan,
    producer_config: ClientConfig,
    consumer_config: ClientConfig,
    world: ClientWorld,
    each: Callable[[int, int], object],
) -> None:
    """Call `each` with the number and the latency, in nanoseconds, of every record."""
    consumer: Consumer[Bytes, Bytes] = Consumer(config=consumer_config.config, world=world, **consumer_config.login)
    producer: Producer[Bytes, Bytes] = Producer(config=producer_config.config, world=world, **producer_config.login)
    async with consumer, producer:
        await _go_to_end(consumer, plan.topic)
        await producer.partitions_for(plan.topic)
        chance = random.Random(0)
        for number in range(plan.records):
            value = _letters(chance, plan.record_size)
            key = _letters(chance, plan.key_size) if plan.key_size else None
            headers = [_header(chance, plan) for _ in range(plan.headers)]
            began_ns = time.perf_counter_ns()
            await (await producer.send(plan.topic, value, key, headers=headers))
            found = await consumer.poll(POLL_S)
            elapsed_ns = time.perf_counter_ns() - began_ns
            _check(found, key, value, headers)
            each(number, elapsed_ns)


async def _go_to_end(consumer: Consumer[Any, Any], topic: str) -> None:
    partitions = [TopicPartition(topic, each.partition) for each in await consumer.partitions_for(topic)]
    consumer.assign(*partitions)
    consumer.seek_to_end()
    for each in partitions:
        await consumer.position(each)


def _letters(chance: random.Random, size: int) -> bytes:
    return bytes([chance.randrange(26) + ord("A")]) * size


def _header(chance: random.Random, plan: TripPlan) -> tuple[str, Bytes]:
    name = _letters(chance, plan.header_key_size).decode()
    return name, None if plan.header_size < 0 else _letters(chance, plan.header_size)


def _check(found: list[ConsumerRecord[Bytes, Bytes]], key: Bytes, value: bytes, headers: list[tuple[str, Bytes]]) -> None:
    if not found:
        raise TripFailed(f"the record was stored, but did not arrive at the consumer within {POLL_S:g} s")
    if len(found) > 1:
        raise TripFailed(
            f"{len(found)} records arrived where one was sent: nothing else may write to the topic during the test"
        )
    record = found[0]
    if (record.key, record.value, list(record.headers)) != (key, value, headers):
        raise TripFailed(
            f"another record arrived than the one that was sent (offset {record.offset} of {record.topic}-{record.partition}): "
            "nothing else may write to the topic during the test"
        )
