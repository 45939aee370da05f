"""`ottla perf latency`: sends records one by one, and measures how long each takes to arrive at a consumer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from ottla.cli.common.clients import ClientConfig, client_logs_shown, consumer_config, producer_config
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import print_json, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.perf.command import INTERRUPTED, Progress, chosen_topic, finite, output_options, print_figures, topic_options
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster import Cluster
from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.producer.asynchronous import Producer
from ottla.client.world import ClientWorld
from ottla.config.client.kinds import CONSUMER, PRODUCER
from ottla.errors import OttlaError
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla perf latency load                                            1,000 records of 100 bytes, acks=all
  ottla perf latency load --num-records 10000 --producer-acks 1 --record-size 1000
  ottla perf latency load --record-key-size 8 --num-headers 2 --record-header-key-size 4 --record-header-size 16
\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

HEADINGS = ("#Records", "#Avg ms", "#Min", "#p50", "#p95", "#p99", "#p99.9", "#Max")


@click.command("latency", epilog=EXAMPLES)
@topic_options
@click.option("--num-records", type=click.IntRange(1), default=1000, show_default=True, help="How many records to send.")
@click.option(
    "--producer-acks",
    type=click.Choice(["1", "all"]),
    default="all",
    show_default=True,
    help="Which replicas must have stored a record.",
)
@click.option("--record-size", type=click.IntRange(0), default=100, show_default=True, metavar="BYTES", help="Size of values.")
@click.option("--record-key-size", type=click.IntRange(0), default=0, metavar="BYTES", help="Size of keys.  [default: no key]")
@click.option("--num-headers", type=click.IntRange(0), default=0, show_default=True, help="How many headers a record has.")
@click.option("--record-header-key-size", type=click.IntRange(0), default=0, metavar="BYTES", help="Size of the headers' keys.")
@click.option(
    "--record-header-size", type=click.IntRange(-1), default=0, metavar="BYTES", help="Size of the headers' values; -1: null."
)
@output_options
@cluster_options(known=frozenset({*PRODUCER.table, *CONSUMER.table}))
def latency(settings: ClientSettings, name: str | None, topic: str | None, as_json: bool, **flags: Any) -> int | None:
    """Send records to TOPIC one by one, and show how long each takes to arrive at a consumer.

    The time runs from `send` until the consumer has the record, with the acknowledgement in between. Nothing else may write to
    the topic during the test; it is created if it does not exist.
    """
    chosen = chosen_topic(name, topic, "ottla perf latency load --num-records 1000")
    plan = TripPlan(
        topic=chosen,
        records=flags["num_records"],
        record_size=flags["record_size"],
        key_size=flags["record_key_size"],
        headers=flags["num_headers"],
        header_key_size=flags["record_header_key_size"],
        header_size=flags["record_header_size"],
    )
    run = _Run(plan, settings, flags, as_json)
    code = None
    try:
        with client_logs_shown():
            with_cluster(settings, run.measure, is_patient=True)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        run.progress.clear()
    if run.latencies_ns:
        run.print_results()
    return code


class _Run:
    def __init__(self, plan: TripPlan, settings: ClientSettings, flags: Mapping[str, Any], as_json: bool) -> None:
        self._plan = plan
        self._as_json = as_json
        acks = flags["producer_acks"]
        weak = {"enable.idempotence": "false"} if acks == "1" else {}  # what acks=1 means: no notice about it
        self._producer = producer_config(settings, weak, {"acks": acks, "linger.ms": 0})
        # Kafka's tool sets fetch.max.wait.ms to 0. A long poll is answered as soon as the record is there, and leaves the
        # processor to the broker.
        self._consumer = consumer_config(settings, {}, {"enable.auto.commit": "false", "auto.offset.reset": "latest"})
        self.latencies_ns: list[int] = []
        self.progress = Progress(plan.records, not as_json, time.monotonic())

    async def measure(self, cluster: Cluster) -> None:
        await create_if_missing(cluster, self._plan.topic)
        await measure(self._plan, self._producer, self._consumer, cluster.world, self._note)

    def _note(self, number: int, elapsed_ns: int) -> None:
        self.latencies_ns.append(elapsed_ns)
        self.progress.show(number + 1, (number + 1) * self._plan.record_size, time.monotonic())

    def print_results(self) -> None:
        """Print what was measured, also of a run that was interrupted."""
        found = sorted(each / 1e6 for each in self.latencies_ns)
        average = sum(found) / len(found)
        p50, p95, p99, p999 = (found[int(len(found) * share)] for share in (0.5, 0.95, 0.99, 0.999))
        if self._as_json:
            numbers = {"avg": average, "min": found[0], "p50": p50, "p95": p95, "p99": p99, "p999": p999, "max": found[-1]}
            latency_ms = {name: finite(number, 4) for name, number in numbers.items()}
            print_json({"topic": self._plan.topic, "records": len(found), "latencyMs": latency_ms})
            return
        cells = (f"{each:,.2f}" for each in (average, found[0], p50, p95, p99, p999, found[-1]))
        print_figures(f"From send to arrival, {self._plan.topic}", HEADINGS, [(f"{len(found):,}", *cells)])


POLL_S = 60.0

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


async def create_if_missing(cluster: Cluster, topic: str) -> None:
    """Create the topic with one partition if there is none, as Kafka's tool."""
    if topic in await cluster.topics():
        return
    warn(f"there is no topic {topic}: it is created, with one partition and one replica")
    (await create_topics(cluster, [NewTopic(topic, 1, 1)])).raise_first()


async def measure(
    plan: TripPlan,
    producer_config: ClientConfig,
    consumer_config: ClientConfig,
    world: ClientWorld,
    each: Callable[[int, int], object],
) -> None:
    """Send a record, wait until it is stored, and poll until a consumer has it, one at a time.

    Producer and consumer share one event loop, so that no thread has to be woken in between. Calls `each` with the number and
    the latency, in nanoseconds, of every record.
    """
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
