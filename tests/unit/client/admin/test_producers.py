"""Transactions as partitions see them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.support.peers.transaction_requests import TransactionRequests
from tests.support.servers.kafka_server import KafkaServer

from ottla.client.admin.producers import PARTITIONS_PER_REQUEST
from ottla.errors import UnknownTopicOrPartitionError
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


@pytest.fixture
def raw(server: KafkaServer) -> Iterator[TransactionRequests]:
    requests = TransactionRequests(server.bootstrap)
    requests.find_coordinator("any")
    yield requests
    requests.client.close()


def test_producers_are_described_and_a_transaction_is_aborted(
    admin: Any, name: str, create: Callable[..., Any], raw: TransactionRequests, eventually: Callable[..., None]
) -> None:
    create({name: 2})
    _, producer = raw.initialise(name)
    raw.add(name, producer, name, 0)
    eventually(lambda: raw.produce(name, producer, 0, name, b"a", b"b")[0], 0)
    results = admin.describe_producers([(name, 0), (name, 1), ("missing-topic", 0)])
    (state,) = results[name, 0]
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (producer.id, producer.epoch, 1)
    assert state.transaction_start_offset == 0
    assert results[name, 1] == []
    assert isinstance(results.errors["missing-topic", 0], UnknownTopicOrPartitionError)
    assert admin.describe_producers([(name, 0)], broker_id=1)[name, 0] == [state]
    admin.abort_transaction((name, 0), producer_id=producer.id, producer_epoch=producer.epoch, coordinator_epoch=0)
    (state,) = admin.describe_producers([(name, 0)])[name, 0]
    assert state.transaction_start_offset is None
    assert admin.list_offsets({(name, 0): "latest"}, isolation_level="read_committed")[name, 0].offset == 3


def test_many_partitions_are_described_in_several_requests(scripted: Any, node: FakeNode) -> None:
    wanted = [("orders", index) for index in range(PARTITIONS_PER_REQUEST + 1)]
    partitions = [MetadataResponsePartition(partition_index=index, leader_id=1) for _, index in wanted]
    node.handlers[MetadataRequest] = lambda request, version: MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        topics=[MetadataResponseTopic(name="orders", partitions=partitions)],
    )
    node.handlers[DescribeProducersRequest] = lambda request, version: DescribeProducersResponse(
        topics=[
            TopicResponse(
                name="orders",
                partitions=[PartitionResponse(partition_index=index) for index in request.topics[0].partition_indexes],
            )
        ]
    )
    for broker_id in (None, 1):
        node.asked.clear()
        assert list(scripted.describe_producers(wanted, broker_id=broker_id).raise_first()) == wanted
        asked = node.asked_for(DescribeProducersRequest)
        assert [len(each.topics[0].partition_indexes) for each in asked] == [PARTITIONS_PER_REQUEST, 1]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.describe_producers([("a", 0)], broker_id=-1), ValueError, "broker_id is -1"),
        (lambda admin: admin.describe_producers(["a"]), TypeError, "wanted_partitions: a partition is"),
        (
            lambda admin: admin.abort_transaction(("a", 0), producer_id=-1, producer_epoch=0, coordinator_epoch=0),
            ValueError,
            "producer_id is -1",
        ),
        (
            lambda admin: admin.abort_transaction(("a", 0), producer_id=1, producer_epoch=1 << 15, coordinator_epoch=0),
            ValueError,
            "producer_epoch is 32768",
        ),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
