"""kafka-python against the test fixture's broker with injected faults."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.testing import Broker

kafka = pytest.importorskip("kafka")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        yield broker


@pytest.fixture
def producer(broker: Broker) -> Iterator[Any]:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retries=5, retry_backoff_ms=10)
    yield producer
    producer.close(5)


def test_a_producer_tries_again_elsewhere(broker: Broker, producer: Any) -> None:
    with broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2) as fault:
        producer.send("orders", b"value", partition=0).get(20)
        assert fault.hits == 2
    assert [record.value for record in broker.records("orders")] == [b"value"]


def test_an_idempotent_producer_survives_lost_replies(broker: Broker, producer: Any) -> None:
    with broker.faults.lose_reply("Produce", times=1) as fault:
        producer.send("orders", b"value", partition=0).get(20)
        assert fault.hits == 1
    assert [record.value for record in broker.records("orders")] == [b"value"]


def test_a_final_error_reaches_the_caller(broker: Broker, producer: Any) -> None:
    broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", topic="orders", partition=1)
    good = producer.send("orders", b"good", partition=0)
    bad = producer.send("orders", b"bad", partition=1)
    good.get(20)
    with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
        bad.get(20)
    assert [record.value for record in broker.records("orders")] == [b"good"]


def test_a_consumer_goes_on_where_it_was(broker: Broker) -> None:
    for number in range(4):
        broker.produce("orders", str(number), partition=number % 2)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
        retry_backoff_ms=10,
    )
    consumer.assign([kafka.TopicPartition("orders", index) for index in range(2)])
    failing = broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1, times=2)
    dropping = broker.faults.drop("ListOffsets", times=1)
    found = sorted(next(consumer).value for _ in range(4))
    consumer.close()
    assert found == [b"0", b"1", b"2", b"3"]
    assert (failing.hits, dropping.hits) == (2, 1)


def test_delayed_request_takes_longer(broker: Broker, producer: Any) -> None:
    broker.faults.delay("Produce", 0.4, client_id=producer.config["client_id"])
    began_s = time.monotonic()
    producer.send("orders", b"value").get(20)
    assert time.monotonic() - began_s >= 0.4


def test_a_topic_that_is_not_created(broker: Broker) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    with (
        broker.faults.fail("CreateTopics", "POLICY_VIOLATION", topic="refused"),
        pytest.raises(kafka.errors.PolicyViolationError),
    ):
        admin.create_topics(["refused"])
    admin.close()
    assert "refused" not in broker.topics()
