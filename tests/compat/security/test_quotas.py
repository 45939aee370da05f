"""Quotas as clients see them: raw requests, a client library and Kafka's own tool; Ottla does as Apache Kafka does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.logs.batches import make_batch
from tests.support.peers.fetching import fetch_of, part
from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_server import StartServer

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

WINDOWS = 4
"""Few windows, of a second each: what a client has used is forgotten soon."""


@pytest.fixture(scope="module")
def server(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    settings = {"quota.window.num": WINDOWS, "num.partitions": 1}
    with start_server(settings, data_dir=tmp_path_factory.mktemp("quotas")) as server:
        yield server


def set_quota(server: KafkaServer, entity: dict[str, str | None], key: str, value: float | None) -> None:
    parts = [AlterClientQuotasRequestEntityData(entity_type=type_, entity_name=name) for type_, name in entity.items()]
    op = OpData(key=key, value=value or 0.0, remove=value is None)
    request = AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=parts, ops=[op])])
    wanted = [ComponentData(entity_type=type_, match_type=0 if name else 1, match=name) for type_, name in entity.items()]

    def values() -> list[float]:
        described = client.request(DescribeClientQuotasRequest(components=wanted, strict=True), 1)
        return [each.value for entry in described.entries for each in entry.values if each.key == key]

    with RawClient.to(server.bootstrap, client_id="boss") as client:
        (entry,) = client.request(request, 1).entries
        assert entry.error_code == 0, entry.error_message
        await_true(lambda: values() == ([] if value is None else [value]), "the broker to know the quota")


def produce(client: RawClient, topic: str, size_bytes: int, acks: int = 1) -> Any:
    batch = bytes(make_batch(b"x" * size_bytes))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])
    if acks == 0:
        client.send(request, 9)
        return None
    return client.request(request, 9)


def test_throttle_times_of_produce(server: KafkaServer) -> None:
    """The request that exceeds the quota is served, and so are those of other connections, with longer times."""
    make_topic(server.bootstrap, "slow")
    set_quota(server, {"client-id": "slow"}, "producer_byte_rate", 10_000)
    clients = [RawClient.to(server.bootstrap, client_id="slow") for _ in range(4)]
    began_s = time.monotonic()
    answers = [produce(client, "slow", 25_000) for client in clients]
    took_ms = (time.monotonic() - began_s) * 1000
    assert [each.responses[0].partition_responses[0].error_code for each in answers] == [0] * 4
    # 25 kB in 3 s of windows are within the quota; each further request adds 2.5 s, less what has passed.
    for number, answer in enumerate(answers):
        expected_ms = max(0, number * 2500 - 500)
        assert expected_ms - took_ms - 100 <= answer.throttle_time_ms <= expected_ms + 100
    with RawClient.to(server.bootstrap, client_id="fast") as other:
        assert produce(other, "slow", 25_000).throttle_time_ms == 0
    # The second client is muted: its next request waits, though other clients' do not.
    began_s = time.monotonic()
    clients[1].request(MetadataRequest(topics=[]), 9)
    assert time.monotonic() - began_s >= (answers[1].throttle_time_ms - 1000) / 1000
    for client in clients:
        client.close()


def test_client_is_muted_after_acks_0(server: KafkaServer) -> None:
    make_topic(server.bootstrap, "unanswered")
    set_quota(server, {"client-id": "unanswered"}, "producer_byte_rate", 10_000)
    with RawClient.to(server.bootstrap, client_id="unanswered") as client:
        began_s = time.monotonic()
        produce(client, "unanswered", 60_000, acks=0)
        client.request(MetadataRequest(topics=[]), 9)
        assert time.monotonic() - began_s >= 2.5


def test_fetch_above_its_quota_is_empty_and_its_session_stays(server: KafkaServer) -> None:
    make_topic(server.bootstrap, "read")
    with RawClient.to(server.bootstrap, client_id="writer") as writer:
        for _ in range(6):
            produce(writer, "read", 20_000)
    set_quota(server, {"client-id": "reader"}, "consumer_byte_rate", 15_000)

    def fetch(client: RawClient, offset: int, session: int = 0, epoch: int = 0) -> Any:
        return client.request(
            fetch_of("read", part(0, offset, 20_000), max_wait_ms=0, session_id=session, session_epoch=epoch), 12
        )

    with RawClient.to(server.bootstrap, client_id="reader") as client:
        answer = fetch(client, 0)
        session, offset, epoch = answer.session_id, 1, 1
        assert session
        served = 1
        while answer.throttle_time_ms == 0:
            answer = fetch(client, offset, session, epoch)
            epoch += 1
            assert answer.error_code == 0
            if answer.throttle_time_ms == 0:
                assert len(answer.responses[0].partitions[0].records)
                served, offset = served + 1, offset + 1
            assert served < 6
        assert served == 2
        assert (answer.responses, answer.session_id) == ([], session)
        waited_s = time.monotonic()
        while answer.throttle_time_ms:
            answer = fetch(client, offset, session, epoch)
            epoch += 1
        assert time.monotonic() - waited_s > 0.8
        assert len(answer.responses[0].partitions[0].records), "the records that were held back come now"


def test_request_time_is_throttled_for_at_most_a_window(server: KafkaServer) -> None:
    set_quota(server, {"client-id": "busy"}, "request_percentage", 0.0001)
    with RawClient.to(server.bootstrap, client_id="busy") as client:
        times = [client.request(MetadataRequest(topics=[]), 9).throttle_time_ms for _ in range(3)]
        assert 0 < times[-1] <= 1000
        began_s = time.monotonic()
        assert client.request(MetadataRequest(topics=[]), 9).throttle_time_ms > 0
        assert time.monotonic() - began_s > (times[-1] - 50) / 1000


def test_changes_of_the_metadata_are_paid_for(server: KafkaServer) -> None:
    set_quota(server, {"client-id": "maker"}, "controller_mutation_rate", 1)

    def create(client: RawClient, name: str, partitions: int, version: int, validate_only: bool = False) -> Any:
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]
        return client.request(CreateTopicsRequest(topics=topics, timeout_ms=9000, validate_only=validate_only), version)

    clients = [RawClient.to(server.bootstrap, client_id="maker") for _ in range(5)]
    first = create(clients[0], "many", 20, 7)
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0), "more than the bucket holds, which was not empty"
    refused = create(clients[1], "one", 1, 7)
    assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 7_000 < refused.throttle_time_ms < 9_100
    assert create(clients[2], "one", 1, 7, validate_only=True).topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    old = create(clients[3], "old", 1, 4)
    assert old.topics[0].error_code == 0
    assert old.throttle_time_ms > refused.throttle_time_ms - 2000
    named = [MetadataRequestTopic(name="automatic")]
    automatic = clients[4].request(MetadataRequest(topics=named, allow_auto_topic_creation=True), 9)
    assert (automatic.topics[0].error_code, automatic.throttle_time_ms) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    for client in clients:
        client.close()


def test_connections_of_an_address(start_server: StartServer, tmp_path: Path) -> None:
    with start_server({"quota.window.num": WINDOWS}, data_dir=tmp_path) as server:
        set_quota(server, {"ip": "127.0.0.1"}, "connection_creation_rate", 2)
        served = refused = 0
        while not refused:
            with RawClient.to(server.bootstrap) as client:
                began_s = time.monotonic()
                try:
                    client.request(MetadataRequest(topics=[]), 9)
                    served += 1
                except ConnectionClosed:
                    refused += 1
            assert served < 20
        assert 5 <= served <= 8
        assert time.monotonic() - began_s < 3


@pytest.mark.slow
@pytest.mark.kafka
def test_quota_is_held_and_kafkas_tool_sets_it(server: KafkaServer, kafka_tools: KafkaTools) -> None:
    """The rate is that of the windows: what is sent in one burst comes in bursts from then on, and the average counts."""
    bytes_per_s = 1_000_000
    kafka_tools.run(
        *("configs", "--bootstrap-server", server.bootstrap, "--alter", "--add-config"),
        *(f"producer_byte_rate={bytes_per_s},request_percentage=500", "--entity-type", "clients", "--entity-name", "held"),
    )
    said = kafka_tools.run(
        *("configs", "--bootstrap-server", server.bootstrap, "--describe", "--entity-type", "clients", "--entity-name", "held")
    ).stdout
    assert "producer_byte_rate=1000000.0" in said
    make_topic(server.bootstrap, "held")
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "held", "linger.ms": 5, "acks": 1})
    record, record_bytes = b"x" * 9_900, 10_000
    delivered_s: list[float] = []

    def note(error: object, _: object) -> None:
        assert error is None
        delivered_s.append(time.monotonic())

    until_s = time.monotonic() + 39
    while time.monotonic() < until_s:
        if len(producer) < 60:
            producer.produce("held", record, on_delivery=note)
        producer.poll(0.01 if len(producer) >= 60 else 0)
    # The windows before the first request count as unused, so the first seconds are left out; and whole bursts are measured.
    first_s = delivered_s[0] + 6
    begins_s = [late for early, late in pairwise(delivered_s) if late - early > 0.2 and early > first_s]
    assert len(begins_s) >= 4, "records come in bursts"
    count = sum(begins_s[0] <= each < begins_s[-1] for each in delivered_s)
    assert count * record_bytes / (begins_s[-1] - begins_s[0]) == pytest.approx(bytes_per_s, rel=0.05)
    kafka_tools.run(
        *("configs", "--bootstrap-server", server.bootstrap, "--alter", "--delete-config", "producer_byte_rate"),
        *("--entity-type", "clients", "--entity-name", "held"),
    )
    producer.flush(60)
