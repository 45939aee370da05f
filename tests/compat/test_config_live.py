"""Settings of a running Ottla node, over the wire: Apache Kafka's error codes, and changes that are durable and take effect."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cases.config_cases import (
    BROKER,
    BROKER_LOGGER,
    DELETE,
    GROUP,
    INCREMENTAL,
    LEGACY,
    NONE,
    SET,
    STRICTER,
    TOPIC,
    Case,
    incremental_request,
    legacy_request,
)
from tests.support.cases.config_views import describe_request, entries
from tests.support.logs.batches import sized_batch
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import start_ottla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def make_topic(client: RawClient) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    (result,) = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), version=7).topics
    assert result.error_code == NONE, result.error_message


def change(client: RawClient, *cases: Case) -> list[int]:
    response = client.request(incremental_request(*cases, validate_only=False), version=1)
    return [entry.error_code for entry in response.responses]


def value_of(client: RawClient, type_: int, resource: str, name: str) -> tuple[str, int]:
    entry = entries(client.request(describe_request(type_, resource, [name]), version=4))[name]
    return entry["value"], entry["source"]


@pytest.fixture(scope="module")
def client() -> Iterator[RawClient]:
    with start_ottla() as server, RawClient.to(server.bootstrap) as client:
        make_topic(client)
        yield client


@pytest.mark.parametrize("case", INCREMENTAL + STRICTER, ids=str)
def test_incremental_changes_are_answered_as_by_apache(client: RawClient, case: Case) -> None:
    for version in (0, 1):
        (entry,) = client.request(incremental_request(case), version).responses
        assert entry.error_code == case.code, entry.error_message


@pytest.mark.parametrize("case", LEGACY, ids=str)
def test_changes_of_the_older_kind_are_answered_as_by_apache(client: RawClient, case: Case) -> None:
    for version in (0, 1, 2):
        (entry,) = client.request(legacy_request(case), version).responses
        assert entry.error_code == case.code, entry.error_message


def test_changes_survive_a_restart(tmp_path: Path) -> None:
    with start_ottla(data_dir=tmp_path) as server, RawClient.to(server.bootstrap) as client:
        make_topic(client)
        changes = [
            Case(NONE, TOPIC, "t", [("retention.ms", SET, "1234567")]),
            Case(NONE, BROKER, "", [("log.retention.ms", SET, "7654321")]),
            Case(NONE, BROKER, "1", [("max.connections", SET, "77")]),
            Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
        ]
        assert change(client, *changes) == [NONE] * 4
        check(client)
    with start_ottla(data_dir=tmp_path) as server, RawClient.to(server.bootstrap) as client:
        check(client)


def check(client: RawClient) -> None:
    assert value_of(client, TOPIC, "t", "retention.ms") == ("1234567", 1)
    assert value_of(client, BROKER, "1", "log.retention.ms") == ("7654321", 3)
    assert value_of(client, BROKER, "1", "max.connections") == ("77", 2)
    assert value_of(client, GROUP, "g", "consumer.session.timeout.ms") == ("50000", 8)


def test_lower_connection_limit_takes_effect_at_once() -> None:
    with start_ottla() as server, RawClient.to(server.bootstrap) as client:
        assert change(client, Case(NONE, BROKER, "1", [("max.connections.per.ip", SET, "2")])) == [NONE]
        with RawClient.to(server.bootstrap) as second:
            assert value_of(second, BROKER, "1", "max.connections.per.ip") == ("2", 2)
            assert is_refused(server)


def is_refused(server: KafkaServer) -> bool:
    try:
        with RawClient.to(server.bootstrap) as third:
            third.request(describe_request(BROKER, "1"), version=4)
    except ConnectionError:
        return True
    return False


def test_changes_of_brokers_and_topics_reach_the_logs_at_once() -> None:
    with start_ottla() as server, RawClient.to(server.bootstrap) as client:
        make_topic(client)
        assert produce(client, 5000) == NONE
        assert change(client, Case(NONE, BROKER, "", [("message.max.bytes", SET, "1000")])) == [NONE]
        assert produce(client, 5000) == ErrorCode.MESSAGE_TOO_LARGE
        assert change(client, Case(NONE, TOPIC, "t", [("max.message.bytes", SET, "10000")])) == [NONE]
        assert produce(client, 5000) == NONE
        assert change(client, Case(NONE, TOPIC, "t", [("max.message.bytes", DELETE, None)])) == [NONE]
        assert produce(client, 5000) == ErrorCode.MESSAGE_TOO_LARGE


def produce(client: RawClient, size_bytes: int) -> int:
    partition = PartitionProduceData(index=0, records=sized_batch(size_bytes))
    topic = TopicProduceData(name="t", partition_data=[partition])
    response = client.request(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]), version=9)
    return int(response.responses[0].partition_responses[0].error_code)


def test_loggers_change_and_show_it(client: RawClient) -> None:
    before, source = value_of(client, BROKER_LOGGER, "1", "root")
    assert source == 6
    assert change(client, Case(NONE, BROKER_LOGGER, "1", [("root", SET, "ERROR")])) == [NONE]
    assert value_of(client, BROKER_LOGGER, "1", "root") == ("ERROR", 6)
    assert change(client, Case(NONE, BROKER_LOGGER, "1", [("root", SET, before)])) == [NONE]
