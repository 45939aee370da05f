"""confluent-kafka against the test fixture's broker with injected faults."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S

from ottla.testing import Broker

confluent_kafka = pytest.importorskip("confluent_kafka")

QUIET = {"log_level": 0}


@pytest.fixture(scope="module", params=[False, True], ids=["thread", "process"])
def one_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(process=request.param) as broker:
        yield broker


@pytest.fixture
def broker(one_broker: Broker) -> Iterator[Broker]:
    yield one_broker
    one_broker.faults.clear()


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"topic-{len(broker.topics())}"
    broker.create_topic(name, partitions=2)
    return name


def producer(broker: Broker, **settings: Any) -> Any:
    return confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, **QUIET, **settings})


def send(client: Any, topic: str, *values: bytes, partition: int = 0, timeout_s: float = 60) -> list[str | None]:
    """The outcome of each record: None, or the error's name."""
    outcomes: list[str | None] = []
    for value in values:
        client.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: outcomes.append(error.name() if error else None)
        )
    assert client.flush(timeout_s) == 0
    return outcomes


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_lost_reply_makes_duplicates_unless_the_producer_is_idempotent(
    broker: Broker, topic: str, is_idempotent: bool
) -> None:
    client = producer(broker, **{"enable.idempotence": is_idempotent, "retry.backoff.ms": 10})
    with broker.faults.lose_reply("Produce", topic=topic, times=2) as fault:
        assert send(client, topic, b"value") == [None]
        assert fault.hits == 2
    assert values(broker, topic) == ([b"value"] if is_idempotent else [b"value"] * 3)


def test_a_dropped_request_is_sent_again(broker: Broker, topic: str) -> None:
    client = producer(broker, **{"retry.backoff.ms": 10})
    with broker.faults.drop("Produce", topic=topic, times=2) as fault:
        assert send(client, topic, b"value") == [None]
        assert fault.hits == 2
    assert values(broker, topic) == [b"value"]


def test_producer_looks_for_a_moved_leader(broker: Broker, topic: str) -> None:
    client = producer(broker, **{"retry.backoff.ms": 10})
    failing = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic, times=2)
    looked = broker.faults.delay("Metadata", 0.0)
    assert send(client, topic, b"value") == [None]
    assert failing.hits == 2
    assert looked.hits >= 2
    assert values(broker, topic) == [b"value"]


def test_one_partition_fails_and_the_other_goes_on(broker: Broker, topic: str) -> None:
    client = producer(broker)
    broker.faults.fail("Produce", "INVALID_RECORD", topic=topic, partition=1)
    assert send(client, topic, b"good", partition=0) == [None]
    assert send(client, topic, b"bad", partition=1) == ["INVALID_RECORD"]
    assert values(broker, topic) == [b"good"]


def test_a_request_that_hangs_runs_into_the_timeout(broker: Broker, topic: str) -> None:
    client = producer(broker, **{"message.timeout.ms": 1000, "request.timeout.ms": 500, "socket.timeout.ms": 500})
    fault = broker.faults.hang("Produce", topic=topic)
    began_s = time.monotonic()
    assert send(client, topic, b"value") == ["_MSG_TIMED_OUT"]
    assert time.monotonic() - began_s >= 0.9
    assert fault.hits >= 1
    assert values(broker, topic) == []


def test_delayed_request_takes_longer(broker: Broker, topic: str) -> None:
    client = producer(broker)
    assert send(client, topic, b"quick") == [None]
    broker.faults.delay("Produce", 0.5, topic=topic)
    began_s = time.monotonic()
    assert send(client, topic, b"slow") == [None]
    assert time.monotonic() - began_s >= 0.5


def test_connections_refused_for_a_while(broker: Broker, topic: str) -> None:
    client = producer(broker, **{"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50})
    assert send(client, topic, b"before") == [None]
    outcomes: list[Any] = []
    with broker.faults.refuse_connections() as fault:
        client.produce(topic, b"during", partition=0, on_delivery=lambda error, _: outcomes.append(error))
        fault.await_hits(2)
        assert values(broker, topic) == [b"before"]
    assert client.flush(30) == 0
    assert outcomes == [None]
    assert values(broker, topic) == [b"before", b"during"]


def consume(broker: Broker, topic: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False, **QUIET}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(2)])
    found: list[bytes] = []
    deadline_s = time.monotonic() + HANG_S
    while len(found) < count and time.monotonic() < deadline_s:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return sorted(found)


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_LEADER_EPOCH", "KAFKA_STORAGE_ERROR"])
def test_consumer_recovers_from_errors_of_one_partition(broker: Broker, topic: str, error: str) -> None:
    for index in range(2):
        broker.produce(topic, f"value {index}", partition=index)
    fault = broker.faults.fail("Fetch", error, topic=topic, partition=1, times=3)
    assert consume(broker, topic, 2) == [b"value 0", b"value 1"]
    assert fault.hits == 3


def test_consumer_recovers_from_lost_connections(broker: Broker, topic: str) -> None:
    for index in range(2):
        broker.produce(topic, f"value {index}", partition=index)
    fault = broker.faults.drop("Fetch", topic=topic, times=2)
    assert consume(broker, topic, 2) == [b"value 0", b"value 1"]
    assert fault.hits == 2


def test_a_producer_through_a_kill(broker: Broker, topic: str) -> None:
    client = producer(broker, **{"enable.idempotence": True, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50})
    assert send(client, topic, b"before") == [None]
    broker.kill()
    outcomes: list[Any] = []
    client.produce(topic, b"after", partition=0, on_delivery=lambda error, _: outcomes.append(error))
    broker.start()
    assert client.flush(30) == 0
    assert outcomes == [None]
    assert values(broker, topic) == [b"before", b"after"]


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
def test_it_stops_soon_after_a_consumer_was_used(is_closed: bool) -> None:
    """The goal is 0.1 s, though a fetch is parked for 50 s. A busy machine gets more tries."""
    took_s: list[float] = []
    while not took_s or min(took_s) >= 0.1:
        assert len(took_s) < 10, f"every stop took longer than that: {took_s}"
        broker = Broker()
        broker.start()
        broker.produce("orders", "value")
        settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.wait.max.ms": 50_000, **QUIET}
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", **settings})
        consumer.subscribe(["orders"])
        while consumer.poll(0.1) is None:
            pass
        wait_for_a_parked_fetch(broker)
        if is_closed:
            consumer.close()
        began_s = time.perf_counter()
        broker.stop()
        took_s.append(time.perf_counter() - began_s)
        if not is_closed:
            consumer.close()


def wait_for_a_parked_fetch(broker: Broker) -> None:
    # Only the node itself knows that a fetch is parked; no request tells.
    partition = broker._engine._host._runner.node.services.partitions.find("orders", 0)  # type: ignore[union-attr]
    await_true(lambda: bool(partition.watches), "a fetch to be parked")
