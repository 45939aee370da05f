"""The metrics of whole clients against a broker, what their connections count, and when telemetry runs."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode, all_versions
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin, Consumer, Producer, aio
from ottla.client.connections import BOOTSTRAP_ID, ConnectionPool
from ottla.client.metrics import ClientMetrics
from ottla.client.runtime import ClientRuntime
from ottla.client.world import ClientWorld
from ottla.client_core.metadata import Metadata
from ottla.client_core.metrics.sensor import Sensor
from ottla.config.client import ProducerSettings, producer_settings
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.ids import Uuid
from ottla.link import LinkOptions
from ottla.sim.world import SeededRandomness
from ottla.testing import Broker
from ottla.wire.apis import ApiKey
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

FETCHES = "consumer-fetch-manager-metrics"
WHERE = ("only", 9092)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("events", partitions=1)
        yield broker


# Whole clients


def check_producer(found: dict[str, dict[str, float]], text: str) -> None:
    sent = found["producer-metrics"]
    assert (sent["record-send-total"], sent["record-error-total"], sent["record-retry-total"]) == (10, 0, 0)
    assert sent["records-per-request-avg"] > 0
    assert sent["request-latency-max"] >= 0
    assert sent["batch-size-max"] > 61
    assert 12 <= sent["record-size-avg"] <= sent["record-size-max"] <= 16  # with six numbers and a time
    assert sent["flush-time-ns-total"] > 0
    assert sent["metadata-wait-time-ns-total"] > 0
    assert 0 <= sent["metadata-age"] < HANG_S
    assert sent["requests-in-flight"] == 0
    assert sent["connection-count"] >= 1
    assert sent["outgoing-byte-total"] > sent["batch-size-max"]
    assert found["producer-topic-metrics{topic=events}"]["record-send-total"] == 10
    nodes = [values for group, values in found.items() if group.startswith("producer-node-metrics{node-id=node-")]
    assert sum(each["request-total"] for each in nodes) == sent["request-total"]
    assert 'kafka_producer_producer_metrics_record_send_total{client_id="ottla-producer"} 10' in text


def test_producer_has_kafkas_metrics(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(10):
            producer.send("events", b"value")
        producer.flush(HANG_S)
        check_producer(producer.metrics(), producer.prometheus_text())


def test_asyncio_producer_has_kafkas_metrics(broker: Broker) -> None:
    async def body() -> None:
        async with aio.Producer(broker.bootstrap_servers) as producer:
            for _ in range(10):
                await producer.send("events", b"value")
            await producer.flush(HANG_S)
            check_producer(producer.metrics(), producer.prometheus_text())

    asyncio.run(body())


def check_consumer(found: dict[str, dict[str, float]], text: str) -> None:
    fetched = found[FETCHES]
    assert fetched["records-consumed-total"] == 7
    assert fetched["bytes-consumed-total"] > 7 * len(b"value")
    assert fetched["fetch-total"] >= 1
    assert fetched["fetch-latency-max"] >= 0
    assert fetched["records-lag-max"] >= 0
    partition = found[FETCHES + "{topic=counted,partition=0}"]
    assert (partition["records-lag"], partition["records-lead"]) == (0, 7)
    assert found[FETCHES + "{topic=counted}"]["records-consumed-total"] == 7
    group = found["consumer-coordinator-metrics"]
    assert (group["assigned-partitions"], group["rebalance-total"], group["failed-rebalance-total"]) == (1, 1, 0)
    assert group["commit-total"] >= 1
    assert group["join-total"] >= 1
    assert group["sync-total"] >= 1
    assert group["partition-assigned-latency-max"] >= 0
    polls = found["consumer-metrics"]
    assert polls["commit-sync-time-ns-total"] > 0
    assert polls["committed-time-ns-total"] > 0
    assert 0 <= polls["last-poll-seconds-ago"] < HANG_S
    assert polls["connection-count"] >= 1
    assert 'kafka_consumer_consumer_fetch_manager_metrics_records_consumed_total{client_id="ottla-consumer"} 7' in text


@pytest.fixture
def counted(broker: Broker) -> Iterator[Broker]:
    """The broker with a topic of seven records."""
    broker.create_topic("counted", partitions=1)
    with Producer(broker.bootstrap_servers) as producer:
        producer.send_many("counted", [b"value"] * 7).wait(HANG_S)
    yield broker
    broker.delete_topic("counted")


def test_consumer_has_kafkas_metrics(counted: Broker) -> None:
    settings: dict[str, Any] = {"group_id": "sync", "auto_offset_reset": "earliest"}
    with Consumer(counted.bootstrap_servers, **settings) as consumer:
        consumer.subscribe(["counted"])
        records: list[Any] = []
        while len(records) < 7:
            records += consumer.poll(HANG_S)
        consumer.commit()
        consumer.committed([("counted", 0)])
        check_consumer(consumer.metrics(), consumer.prometheus_text())
        consumer.unsubscribe()
        assert consumer.metrics()["consumer-coordinator-metrics"]["assigned-partitions"] == 0


def test_asyncio_consumer_has_kafkas_metrics(counted: Broker) -> None:
    async def body() -> None:
        async with aio.Consumer(counted.bootstrap_servers, group_id="aio", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["counted"])
            records: list[Any] = []
            while len(records) < 7:
                records += await consumer.poll(HANG_S)
            await consumer.commit()
            await consumer.committed([("counted", 0)])
            check_consumer(consumer.metrics(), consumer.prometheus_text())

    asyncio.run(body())


def test_lag_of_a_partition_is_forgotten_when_another_is_read(counted: Broker) -> None:
    with Producer(counted.bootstrap_servers) as producer:
        producer.send("events", b"value").result(HANG_S)
    with Consumer(counted.bootstrap_servers, auto_offset_reset="earliest", max_poll_records=2) as consumer:
        consumer.assign([("counted", 0)])
        assert len(consumer.poll(HANG_S)) == 2
        assert consumer.metrics()[FETCHES + "{topic=counted,partition=0}"]["records-lag"] == 5
        consumer.assign([("events", 0)])
        assert consumer.poll(HANG_S)
        found = consumer.metrics()
        assert FETCHES + "{topic=events,partition=0}" in found
        assert FETCHES + "{topic=counted,partition=0}" not in found


def test_admin_has_kafkas_metrics(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers, enable_metrics_push=True) as admin:
        admin.list_topics()
        assert admin.metrics()["admin-client-metrics"]["request-total"] >= 1
        assert "kafka_admin_client_admin_client_metrics_connection_count" in admin.prometheus_text()


# Connections and telemetry, over a network in memory


class Place:
    """The metrics of a client with its pool and runner."""

    def __init__(self, node: FakeNode, settings: ProducerSettings) -> None:
        randomness = SeededRandomness(Random(1))
        world = ClientWorld(RealClock(), FakeNetwork({WHERE: node}), randomness, RealThreads())
        self.metadata = Metadata(settings, randomness.below)
        self.metrics = ClientMetrics("producer", settings, world)
        self.pool = ConnectionPool(world, settings, [WHERE], LinkOptions(), self.metadata, self.metrics)
        self.runner = ClientRuntime([self.metadata], self.pool, world.clock, self._after_round)

    def _after_round(self) -> None:
        self.metrics.after_round(self.runner, self.metadata.responses > 0)

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(HANG_S):
            while not condition():
                await asyncio.sleep(0.005)

    def close(self) -> None:
        self.runner.close()
        self.pool.close()


def settings(**given: Any) -> ProducerSettings:
    return producer_settings("only:9092", None, given)


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=WHERE[0], port=WHERE[1])], cluster_id="c")


def test_connections_are_counted_until_they_end() -> None:
    async def body() -> None:
        place = Place(FakeNode({MetadataRequest: metadata}), settings())
        sensor = place.metrics.api_latencies[ApiKey.METADATA] = Sensor()
        link = await place.pool.link(BOOTSTRAP_ID)
        await link.request(MetadataRequest())
        assert place.pool.in_flight == 0
        found = place.metrics.as_dict()
        everything, node = found["producer-metrics"], found["producer-node-metrics{node-id=node--1}"]
        assert (everything["connection-count"], everything["connection-creation-total"]) == (1, 1)
        assert (node["request-total"], node["response-total"]) == (1, 1)
        assert node["incoming-byte-total"] == link.counters.received_bytes
        assert 0 < node["outgoing-byte-total"] < link.counters.sent_bytes
        assert sensor.count == 1
        link.close()
        link.close()
        everything = place.metrics.as_dict()["producer-metrics"]
        assert (everything["connection-count"], everything["connection-close-total"]) == (0, 1)
        place.close()

    asyncio.run(body())


class Receiver:
    """A node that asks for all metrics."""

    def __init__(self) -> None:
        self.asked = 0
        self.pushes: list[PushTelemetryRequest] = []
        handlers = {
            MetadataRequest: metadata,
            GetTelemetrySubscriptionsRequest: self._subscription,
            PushTelemetryRequest: self._push,
        }
        self.node = FakeNode(handlers)

    def _subscription(self, request: GetTelemetrySubscriptionsRequest, version: int) -> GetTelemetrySubscriptionsResponse:
        self.asked += 1
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=Uuid(b"0123456789abcdef"), subscription_id=5, push_interval_ms=60_000, requested_metrics=["*"]
        )

    def _push(self, request: PushTelemetryRequest, version: int) -> PushTelemetryResponse | None:
        self.pushes.append(request)
        return PushTelemetryResponse()


def test_client_that_closes_pushes_its_metrics_once_more() -> None:
    receiver = Receiver()

    async def body() -> None:
        place = Place(receiver.node, settings())
        place.metadata.refresh("the test")
        place.runner.wake()
        await place.until(lambda: place.metrics.telemetry.subscription is not None)
        await place.metrics.close(place.runner)
        place.close()

    asyncio.run(body())
    (push,) = receiver.pushes
    assert push.terminating
    assert push.metrics
    assert receiver.node.connections <= 2  # the bootstrap address and the node itself, as without telemetry


def test_nothing_is_asked_without_enable_metrics_push() -> None:
    receiver = Receiver()

    async def body() -> None:
        place = Place(receiver.node, settings(enable_metrics_push=False))
        place.metadata.refresh("the test")
        place.runner.wake()
        await place.until(lambda: place.metadata.responses > 0)
        await asyncio.sleep(0)
        await place.metrics.close(place.runner)
        place.close()

    asyncio.run(body())
    assert receiver.asked == 0


def test_close_does_not_wait_for_a_broker_that_is_silent() -> None:
    receiver = Receiver()
    receiver.node.handlers[PushTelemetryRequest] = lambda request, version: None

    async def body() -> None:
        place = Place(receiver.node, settings())
        place.metadata.refresh("the test")
        place.runner.wake()
        await place.until(lambda: place.metrics.telemetry.subscription is not None)
        async with asyncio.timeout(HANG_S):
            await place.metrics.close(place.runner, 0.05)
        assert not place.metrics.telemetry.is_closed
        place.close()

    asyncio.run(body())


def test_broker_without_the_api_is_asked_nothing() -> None:
    served = all_versions(GetTelemetrySubscriptions=None, PushTelemetry=None)
    node = FakeNode({MetadataRequest: metadata}, served)

    async def body() -> None:
        place = Place(node, settings())
        place.metadata.refresh("the test")
        place.runner.wake()
        await place.until(lambda: (place.metrics.telemetry.next_deadline_ms() or 0) > place.metrics.now_ms())
        found = place.metrics.as_dict()["producer-metrics"]
        assert found["request-total"] == place.metadata.responses
        await place.metrics.close(place.runner)
        place.close()

    asyncio.run(body())
