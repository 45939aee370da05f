"""Every API in every version that Kafka 4.3 serves: the same requests get the same replies, error codes and all.

Apache Kafka's own replies are kept in tests/golden/broker, so that `make test` needs no second server. The run against Apache
Kafka compares them with what it says now; with OTTLA_WRITE_GOLDEN=1 it writes them. APIs of coordinators have sweeps of their
own: `test_coordinator_versions`, `test_membership_versions`.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer
from tests.support.sweep.admin_cases import admin_cases
from tests.support.sweep.cases import Topics, metadata_cases, record_cases
from tests.support.sweep.membership import MEMBERSHIP
from tests.support.sweep.sweep import COORDINATED, ask_all, differences, read_golden, write_golden

from ottla.broker.requests.apis import ON_BROKER
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


@pytest.fixture(scope="module")
def swept(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A server for this test alone, so that its replies depend only on the sweep."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    with start_server({"log.dirs": f"{one},{two}", "auto.create.topics.enable": "false"}, data_dir=one) as server:
        yield server


@pytest.fixture(scope="module")
def replies(swept: KafkaServer, server_kind: str) -> dict[str, Any]:
    topics = Topics(swept.bootstrap)
    cases = [*metadata_cases(topics), *record_cases(topics), *admin_cases(topics)]
    names = [str(case) for case in cases]
    assert len(set(names)) == len(names)
    assert {case.make().KEY for case in cases} == set(ON_BROKER) - COORDINATED - set(MEMBERSHIP), "every API is in a sweep"
    found = ask_all(swept, cases)
    if server_kind == "apache" and os.environ.get("OTTLA_WRITE_GOLDEN"):
        write_golden(found)
    return found


@pytest.mark.parametrize("api_key", sorted(set(ON_BROKER) - COORDINATED - set(MEMBERSHIP)), ids=lambda key: APIS[key].name)
def test_replies_are_as_recorded(api_key: int, replies: dict[str, Any], swept: KafkaServer) -> None:
    golden = read_golden()
    assert list(golden) == list(replies), "the sweep has changed: write the golden file again"
    wrong = []
    for name, reply in replies.items():
        if name.startswith(f"{APIS[api_key].name}: "):
            wrong += [f"{name}{line}" for line in differences(reply, golden[name])]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("api_key", sorted(ON_BROKER), ids=lambda key: APIS[key].name)
def test_versions_that_do_not_exist(api_key: int, cluster: KafkaServer) -> None:
    """The connection is closed; ApiVersions alone is answered, in version 0."""
    if api_key == ApiKey.API_VERSIONS:
        request = b"\x00\x12\x00\x63\x00\x00\x00\x05\xff\xff\x00"
        with RawClient.to(cluster.bootstrap) as client:
            client.send_bytes(len(request).to_bytes(4, "big") + request)
            reply = client.receive(api_key, 0, 5)
        assert reply.error_code == 35
        assert ApiKey.API_VERSIONS in [api.api_key for api in reply.api_keys]
        return
    newest = APIS[api_key].advertised()[1]
    for version in (newest + 1, APIS[api_key].oldest - 1):
        header = api_key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\x00\x00\x00\x05\xff\xff\x00"
        with RawClient.to(cluster.bootstrap) as client:
            client.send_bytes((len(header) + 40).to_bytes(4, "big") + header + bytes(40))
            with pytest.raises(ConnectionClosed):
                client.receive_frame()


def test_pipelined_requests_are_answered_in_order(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    part = PartitionProduceData(index=0, records=bytes(make_batch(b"value")))
    produce = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[part])])
    slow = FetchRequest(max_wait_ms=400, min_bytes=1 << 20, session_epoch=-1, max_bytes=1 << 20)
    slow.topics = [FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    with RawClient.to(cluster.bootstrap) as client:
        sent = [(produce, 9), (slow, 11), (produce, 9), (MetadataRequest(topics=[]), 9), (slow, 11), (produce, 9)]
        numbers = [client.send(request, version) for request, version in sent]
        replies = [
            client.receive(request.KEY, version, number) for (request, version), number in zip(sent, numbers, strict=True)
        ]
    offsets = [replies[index].responses[0].partition_responses[0].base_offset for index in (0, 2, 5)]
    assert offsets == [0, 1, 2]
