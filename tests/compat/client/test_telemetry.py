"""Client metrics pushed (KIP-714): to Ottla, and to Apache Kafka, where a plugin reads them with Apache's own classes."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports
from tests.support.servers.ottla_server import StartServer, start_ottla

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


async def _refusals(server: KafkaServer) -> dict[str, object]:
    """What a broker answers to good and bad requests of a client, in short."""
    said: dict[str, object] = {}
    metrics = MetricsRegistry("producer", "p", producer_settings({"bootstrap.servers": server.bootstrap}))
    ProducerMetrics(metrics).batch_sent("my-topic", 10, 500, 3, 0)
    async with connected(server, "stranger") as link:
        found = await link.request(GetTelemetrySubscriptionsRequest())
        said["subscription"] = (
            found.error_code,
            found.accepted_compression_types,
            found.push_interval_ms,
            found.telemetry_max_bytes,
            found.delta_temporality,
            found.requested_metrics,
        )
        instance_id = found.client_instance_id
        said["has an id"] = instance_id != ZERO_UUID
        asked = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        said["asks again at once"] = (await link.request(asked)).error_code
        content = TelemetryPayloads(metrics, 1_000).make(subscription_of(found), Codec.NONE, 0, 2_000).content

        async def push(**changes: object) -> int:
            fields = {"client_instance_id": instance_id, "subscription_id": found.subscription_id, "metrics": content} | changes
            await asyncio.sleep(1.5 * INTERVAL_MS / 1000)  # the broker's own limit: there is nothing to await
            return int((await link.request(PushTelemetryRequest(**fields))).error_code)  # type: ignore[arg-type]

        said["push"] = await push()
        said["push again at once"] = (
            await link.request(
                PushTelemetryRequest(client_instance_id=instance_id, subscription_id=found.subscription_id, metrics=content)
            )
        ).error_code
        said["no id"] = await push(client_instance_id=ZERO_UUID)
        said["other subscription"] = await push(subscription_id=found.subscription_id + 1)
        said["asks after that"] = (await link.request(asked)).error_code
        said["unknown codec"] = await push(compression_type=9)
        said["damaged"] = await push(compression_type=Codec.ZSTD, metrics=b"no zstd")
        said["too large"] = await push(metrics=b"x" * 1_048_577)
        said["nothing"] = await push(metrics=b"")
        said["last"] = await push(terminating=True)
        said["after the last"] = await push()
    return said


RECORDED = {
    "subscription": (0, [4, 3, 1, 2], INTERVAL_MS, 1_048_576, True, ["*"]),
    "has an id": True,
    "asks again at once": 89,
    "push": 0,
    "push again at once": 89,
    "no id": 42,
    "other subscription": 117,
    "asks after that": 0,
    "unknown codec": 76,
    "damaged": 87,
    "too large": 118,
    "nothing": 0,
    "last": 0,
    "after the last": 42,
}
"""Apache Kafka's answers: `test_apache_answers_as_recorded` compares them."""


@pytest.mark.slow
def test_apache_answers_as_recorded(receiver: Receiver) -> None:
    assert asyncio.run(_refusals(receiver.server)) == RECORDED


def test_ottla_answers_as_apache() -> None:
    [port] = free_ports(1)
    with start_ottla({"ottla.metrics.port": port}) as server:
        asyncio.run(_subscribe(server, {"metrics": "*", "interval.ms": str(INTERVAL_MS)}))
        assert asyncio.run(_refusals(server)) == RECORDED


def _pushed(port: int) -> dict[tuple[str, str], float]:
    """(name, client id) → value, of the numbers without more labels than the client's own, which the page of clients has."""
    with urlopen(f"http://127.0.0.1:{port}/metrics/clients", timeout=30) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    return {
        (sample.name, sample.labels.get("client_id", "")): sample.value
        for family in families
        for sample in family.samples
        if not sample.labels.keys() - {"client_id", "client_instance_id", "group_id", "group_member_id"}
    }


def test_ottla_publishes_what_clients_push() -> None:
    """Deltas add up to what the client did; a client that ends is gone; a subscription that does not match asks for nothing."""
    [port] = free_ports(1)
    name = "kafka_client_producer_record_send_total"
    with start_ottla({"ottla.metrics.port": port}) as server:
        match = "client_id=produ.*,client_software_name=.*ottla.*"
        asyncio.run(_subscribe(server, {"metrics": "org.apache.kafka.producer.", "interval.ms": "100", "match": match}))
        with Admin(server.bootstrap) as admin, Producer(server.bootstrap, client_id="other") as other:
            admin.create_topics([NewTopic("pushed", 1)])
            other.send("pushed", b"x").result(HANG_S)
            with Producer(server.bootstrap, client_id="producer") as producer:
                for sent in (9, 14):
                    producer.send_many("pushed", [b"value"] * (sent if sent == 9 else sent - 9)).wait(HANG_S)
                    deadline_s = time.monotonic() + HANG_S
                    while _pushed(port).get((name, "producer")) != sent:
                        assert time.monotonic() < deadline_s, f"waited in vain for {sent} records: {_pushed(port)}"
                        time.sleep(0.05)
            found = _pushed(port)
    assert not [key for key in found if key[1] == "other"]
    assert (name, "producer") not in found, "it has ended"
    assert found["ottla_client_telemetry_pushes_total", ""] >= 3


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
