"""Client metrics pushed to Apache Kafka (KIP-714), read there by a plugin with Apache's own OpenTelemetry classes."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.kafka_server import HANG_S, KafkaServer
from tests.support.servers.ottla_server import StartServer

from ottla import Admin, Consumer, Producer
from ottla.client.admin.topics import NewTopic
from ottla.client.connections import ConnectionPool
from ottla.client.metrics import ConnectionMetrics
from ottla.client.runtime import ClientRuntime
from ottla.client.world import real_client_world
from ottla.client_core.metadata import Metadata
from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.telemetry import DEFAULT_INTERVAL_MS, Telemetry, TelemetryPayloads, subscription_of
from ottla.config.client import ProducerSettings, producer_settings
from ottla.ids import ZERO_UUID, uuid_text
from ottla.link import Link, LinkOptions
from ottla.records.compression import Codec
from ottla.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest

CLIENT_METRICS = 16
INTERVAL_MS = 200
SENT = "org.apache.kafka.producer.record.send.total"


class Push(NamedTuple):
    """One push, as the broker's plugin saw it."""

    client_instance_id: str
    client_id: str
    is_last: bool
    resource: str
    points: list[tuple[str, str, float, str]]
    """Name, kind, value and attributes."""


class Receiver(NamedTuple):
    """A broker with a receiver of client metrics."""

    server: KafkaServer
    file: Path

    def pushes(self, client_id: str) -> list[Push]:
        """What one client has pushed so far."""
        found: list[Push] = []
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        for line in lines:
            kind, *fields = line.split("\t")
            if kind == "push":
                instance, client, is_last, _, resource = fields
                found.append(Push(instance, client, is_last == "true", resource, []))
            else:
                found[-1].points.append((fields[0], fields[1], float(fields[2]), fields[3]))
        return [each for each in found if each.client_id == client_id]


@pytest.fixture(scope="module")
def receiver(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """Apache Kafka with our receiver, and a subscription to all metrics."""
    folder = tmp_path_factory.mktemp("telemetry")
    JavaPrograms(apache_kafka, folder).compile("TelemetryReceiver")
    file = folder / "pushes"
    properties = {"metric.reporters": "TelemetryReceiver", "telemetry.receiver.file": file}
    with apache_kafka.with_classes(folder).start_server(properties) as server:
        asyncio.run(_subscribe(server, {"metrics": "*", "interval.ms": str(INTERVAL_MS)}))
        yield Receiver(server, file)


async def _subscribe(server: KafkaServer, values: dict[str, str]) -> None:
    async with connected(server, "admin") as link:
        configs = [AlterableConfig(name=name, value=value) for name, value in values.items()]
        resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name="all", configs=configs)
        response = await link.request(IncrementalAlterConfigsRequest(resources=[resource]))
        assert [each.error_code for each in response.responses] == [0]


@asynccontextmanager
async def connected(server: KafkaServer, client_id: str) -> AsyncIterator[Link]:
    host, _, port = server.bootstrap.rpartition(":")
    link = await Link.connect(real_client_world().network, host, int(port), LinkOptions(client_id=client_id))
    try:
        yield link
    finally:
        link.close()


class Client:
    """A client that only pushes: the parts that a producer will have, driven by the runner."""

    def __init__(self, server: KafkaServer, settings: ProducerSettings) -> None:
        world = real_client_world()
        self.metrics = MetricsRegistry("producer", settings.client_id, settings)
        self.producer = ProducerMetrics(self.metrics)
        self.connections = ConnectionMetrics(self.metrics)
        self.telemetry = Telemetry(settings, self.metrics, world.randomness.below, world.clock.now_ms)
        metadata = Metadata(settings, world.randomness.below)
        options = LinkOptions(client_id=settings.client_id)
        self.pool = ConnectionPool(world, settings, settings.bootstrap_servers, options, metadata)
        self.runner = ClientRuntime([metadata, self.telemetry], self.pool, world.clock)
        self.runner.wake()

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(HANG_S):
                while not condition():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}; refused: {self.telemetry.refusal}") from None


@asynccontextmanager
async def running(server: KafkaServer, client_id: str) -> AsyncIterator[Client]:
    client = Client(server, producer_settings({"bootstrap.servers": server.bootstrap, "client.id": client_id}))
    try:
        yield client
    finally:
        client.runner.close()
        client.pool.close()


@pytest.mark.slow
def test_apache_reads_what_a_client_pushes(receiver: Receiver) -> None:
    """Three pushes and a last one: the deltas add up, tags are attributes, the client's own attributes are the resource."""

    async def body() -> str:
        async with running(receiver.server, "pushing") as client:
            client.telemetry.resource["transactional_id"] = "my-transactions"
            for number in range(3):
                client.producer.batch_sent("my-topic", 10, 500, 3, client.runner.now_ms())
                client.connections.request_sent(1, 600, client.runner.now_ms())
                await client.until(lambda: len(receiver.pushes("pushing")) > number, f"push {number + 1}")  # noqa: B023
            client.producer.batch_sent("my-topic", 7, 500, 3, client.runner.now_ms())
            client.telemetry.close()
            client.runner.wake()
            await client.until(lambda: client.telemetry.is_closed, "the last push")
            assert client.telemetry.refusal is None
            return uuid_text(client.telemetry.client_instance_id or ZERO_UUID)

    client_instance_id = asyncio.run(body())
    pushes = receiver.pushes("pushing")
    assert {each.client_instance_id for each in pushes} == {client_instance_id}
    assert [each.is_last for each in pushes] == [False] * (len(pushes) - 1) + [True]
    assert {each.resource for each in pushes} == {"transactional_id=my-transactions"}
    sent = [(kind, value) for push in pushes for name, kind, value, _ in push.points if name == SENT]
    assert {kind for kind, _ in sent} == {"delta"}
    assert sum(value for _, value in sent) == 37
    points = pushes[-1].points
    attributes = {name: shown for name, _, _, shown in points}
    assert attributes["org.apache.kafka.producer.topic.byte.total"] == "topic=my-topic"
    assert attributes["org.apache.kafka.producer.node.request.total"] == "node_id=node-1"
    assert ("org.apache.kafka.producer.record.queue.time.max", "gauge", 3.0, "") in points


@pytest.mark.slow
@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.title)
def test_apache_decompresses_every_codec(receiver: Receiver, codec: Codec) -> None:
    settings = producer_settings({"bootstrap.servers": receiver.server.bootstrap})
    metrics = MetricsRegistry("producer", "p", settings)
    ProducerMetrics(metrics).batch_sent("my-topic", 10, 500, 3, 0)
    client_id = f"codec-{codec.title}"

    async def body() -> int:
        async with connected(receiver.server, client_id) as link:
            found = await link.request(GetTelemetrySubscriptionsRequest())
            assert found.error_code == 0
            subscription = subscription_of(found)
            assert set(subscription.codecs) == set(Codec) - {Codec.NONE}
            assert subscription.is_delta
            payload = TelemetryPayloads(metrics, 1_000).make(subscription, codec, 0, 2_000)
            response = await link.request(
                PushTelemetryRequest(
                    client_instance_id=found.client_instance_id,
                    subscription_id=subscription.id,
                    compression_type=codec,
                    metrics=payload.content,
                )
            )
            return int(response.error_code)

    assert asyncio.run(body()) == 0
    (push,) = receiver.pushes(client_id)
    assert (SENT, "delta", 10.0, "") in push.points


@pytest.mark.slow
def test_a_changed_subscription_is_followed(receiver: Receiver) -> None:
    """The broker refuses the old subscription id; the client asks again and pushes what is wanted now."""
    prefix = "org.apache.kafka.producer.record.send"

    async def body() -> None:
        async with running(receiver.server, "following") as client:
            client.producer.batch_sent("my-topic", 10, 500, 3, client.runner.now_ms())
            await client.until(lambda: bool(receiver.pushes("following")), "the first push")
            try:
                await _subscribe(receiver.server, {"metrics": prefix})
                await client.until(
                    lambda: {name.startswith(prefix) for name, *_ in receiver.pushes("following")[-1].points} == {True},
                    "a push of fewer metrics",
                )
            finally:
                await _subscribe(receiver.server, {"metrics": "*"})

    asyncio.run(body())


def _await_push(receiver: Receiver, client_id: str) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not receiver.pushes(client_id):
        assert time.monotonic() < deadline_s, f"waited in vain for a push of {client_id}"
        time.sleep(0.02)


@pytest.mark.slow
def test_producer_consumer_and_admin_push_their_metrics(receiver: Receiver) -> None:
    """Until they are closed: their last push is marked, and the sums of their deltas are what they did."""
    bootstrap = receiver.server.bootstrap
    with Admin(bootstrap, client_id="admin", enable_metrics_push=True) as admin:
        admin.create_topics([NewTopic("pushed", 1)])
        with Producer(bootstrap, client_id="producer") as producer:
            producer.send_many("pushed", [b"value"] * 9).wait(HANG_S)
            _await_push(receiver, "producer")
            producer_id = producer.client_instance_id(HANG_S)
        with Consumer(bootstrap, client_id="consumer", group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["pushed"])
            records: list[object] = []
            while len(records) < 9:
                records += consumer.poll(HANG_S)
            _await_push(receiver, "consumer")
            member_id = consumer.group_metadata().member_id
            consumer_id = consumer.client_instance_id(HANG_S)
        _await_push(receiver, "admin")

    def pushed(client_id: str, metric: str) -> float:
        pushes = receiver.pushes(client_id)
        assert [each.is_last for each in pushes] == [False] * (len(pushes) - 1) + [True]
        return sum(value for push in pushes for name, kind, value, tags in push.points if name == metric and not tags)

    assert pushed("producer", SENT) == 9
    assert pushed("consumer", "org.apache.kafka.consumer.fetch.manager.records.consumed.total") == 9
    assert pushed("consumer", "org.apache.kafka.consumer.coordinator.rebalance.total") == 1
    assert pushed("admin", "org.apache.kafka.admin.client.request.total") >= 1
    assert {each.client_instance_id for each in receiver.pushes("producer")} == {uuid_text(producer_id)}
    assert {each.client_instance_id for each in receiver.pushes("consumer")} == {uuid_text(consumer_id)}
    resource = receiver.pushes("consumer")[-1].resource
    assert "group_id=g" in resource
    assert f"group_member_id={member_id}" in resource


def test_a_broker_without_receiver_is_left_alone(start_server: StartServer) -> None:
    """Neither Ottla nor Apache Kafka without a plugin serves the API: the client asks again in 5 minutes."""

    async def body(server: KafkaServer) -> None:
        async with running(server, "quiet") as client:
            await client.until(lambda: (client.telemetry.next_deadline_ms() or 0) > client.runner.now_ms(), "a refusal")
            due_ms = client.telemetry.next_deadline_ms()
            assert due_ms is not None
            assert due_ms > client.runner.now_ms() + DEFAULT_INTERVAL_MS - HANG_S * 1000
            client.telemetry.close()
            assert client.telemetry.is_closed

    with start_server() as server:
        asyncio.run(body(server))
