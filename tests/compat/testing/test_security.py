"""Secured brokers for users' tests: each library logs in with the settings that `client_config` gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest

from ottla import Producer
from ottla.errors import AuthenticationError, ClusterAuthorizationError, TopicAuthorizationError
from ottla.testing import Broker, Security

PASSWORD = 'wonder,land"=\\'
SECURITIES = {
    "tls-scram-512": Security(users={"alice": PASSWORD}),
    "plain-scram-256": Security(users={"alice": PASSWORD}, mechanism="SCRAM-SHA-256", tls=False),
    "tls-plain": Security(users={"alice": PASSWORD}, mechanism="PLAIN"),
    "certificates": Security(users={"alice": ""}, mechanism=None),
}


@pytest.fixture(params=SECURITIES.values(), ids=SECURITIES.keys(), scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(security=request.param) as broker:
        broker.create_topic("orders")
        yield broker


def test_own_client(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, config=broker.client_config("alice")) as producer:
        producer.send("orders", b"own").result()
    assert b"own" in [record.value for record in broker.records("orders")]


def test_confluent_kafka(broker: Broker) -> None:
    config = broker.client_config("alice", library="confluent-kafka")
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, **config})
    producer.produce("orders", b"confluent")
    assert producer.flush(30) == 0
    assert b"confluent" in [record.value for record in broker.records("orders")]


def test_kafka_python(broker: Broker) -> None:
    config = broker.client_config("alice", library="kafka-python")
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config)
    producer.send("orders", b"kafka-python").get(30)
    producer.close()
    assert b"kafka-python" in [record.value for record in broker.records("orders")]


def test_aiokafka(broker: Broker) -> None:
    async def send() -> None:
        config = broker.client_config("alice", library="aiokafka")
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config) as producer:
            await producer.send_and_wait("orders", b"aiokafka")

    asyncio.run(send())
    assert b"aiokafka" in [record.value for record in broker.records("orders")]


def test_wrong_password_is_refused(broker: Broker) -> None:
    if "sasl.mechanism" not in broker.client_config("alice"):
        pytest.skip("there are no passwords")
    config = broker.client_config("alice", "wrong")
    with Producer(broker.bootstrap_servers, config=config) as producer, pytest.raises(AuthenticationError, match="alice"):
        producer.send("orders", b"no").result()


@pytest.mark.parametrize("process", [False, True])
def test_access_is_allowed_and_denied_while_the_broker_runs(process: bool) -> None:
    security = Security(users={"alice": "a"}, mechanism="PLAIN", tls=False, acls=True)
    with Broker(security=security, process=process) as broker:
        broker.create_topic("orders-1")
        config = broker.client_config("alice")
        denied = (ClusterAuthorizationError, TopicAuthorizationError)
        with Producer(broker.bootstrap_servers, config=config) as producer, pytest.raises(denied):
            # Who may write nowhere gets no producer id either; the metadata of the topic may be refused first.
            producer.send("orders-1", b"too early").result()
        broker.allow("alice", "write", topic="orders-", prefixed=True)
        with Producer(broker.bootstrap_servers, config=config) as producer:
            producer.send("orders-1", b"now").result()
            broker.deny("alice", "write", topic="orders-1")
            with pytest.raises(TopicAuthorizationError):
                producer.send("orders-1", b"too late").result()
        assert [record.value for record in broker.records("orders-1")] == [b"now"]


def test_restart_keeps_users_and_certificates() -> None:
    with Broker(security=Security(users={"alice": "a"}, acls=True)) as broker:
        config = broker.client_config("alice")
        broker.allow("alice", "write", "create", topic="orders")
        broker.restart()
        with Producer(broker.bootstrap_servers, config=config) as producer:
            producer.send("orders", b"again").result()


def test_mistakes_are_raised_where_they_are_made() -> None:
    with pytest.raises(ValueError, match="give one of SCRAM-SHA-512"):
        Security(mechanism="GSSAPI")
    with pytest.raises(ValueError, match="not secured"):
        Security(mechanism=None, tls=False)
    with pytest.raises(ValueError, match="choose another name"):
        Security(users={"admin": "x"})
    assert "wonderland" not in repr(Security(users={"alice": "wonderland"}))
    with Broker() as broker:
        with pytest.raises(ValueError, match=r"not secured: give Broker\(security="):
            broker.client_config()
        with pytest.raises(ValueError, match="not secured"):
            broker.allow("alice", "read", topic="orders")
    with Broker(security=Security(mechanism="PLAIN", tls=False)) as broker, pytest.raises(ValueError, match="control is off"):
        broker.allow("alice", "read", topic="orders")


@pytest.mark.kafka_broker(security=True)
def test_fixture_takes_security(kafka_broker: Broker) -> None:
    assert kafka_broker.client_config()["security.protocol"] == "SASL_SSL"
