"""A cluster in memory for tests of the verbs: the test sets the answers of `node`, and `ottla` runs the command against it."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.support.servers.ottla_cli import Said, run_cli

from ottla.ids import Uuid
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

RunOttla = Callable[..., Said]
ORDERS_ID = Uuid(b"orders-topic-id!")
WHERE = ("localhost", 9092)


def describe(name: str, partitions: int = 2, leader: int = 1) -> MetadataResponseTopic:
    """A topic as in a Metadata response."""
    return MetadataResponseTopic(
        name=name,
        topic_id=ORDERS_ID,
        partitions=[
            MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=0, replica_nodes=[1], isr_nodes=[1])
            for index in range(partitions)
        ],
    )


def metadata_of(*topics: MetadataResponseTopic) -> Callable[[MetadataRequest, int], MetadataResponse]:
    """Answers Metadata with these topics; others do not exist."""

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        known = {topic.name: topic for topic in topics}
        wanted = list(known) if request.topics is None else [each.name for each in request.topics]
        found = [known.get(name) or MetadataResponseTopic(name=name, error_code=3) for name in wanted]
        broker = MetadataResponseBroker(node_id=1, host=WHERE[0], port=WHERE[1])
        return MetadataResponse(brokers=[broker], controller_id=1, topics=found)

    return answer


def make_node(*topics: MetadataResponseTopic) -> FakeNode:
    """A broker with these topics. It describes those that its handler of Metadata knows, also after a test has set that."""
    node = FakeNode({MetadataRequest: metadata_of(*topics)})

    def describe_partitions(request: DescribeTopicPartitionsRequest, version: int) -> DescribeTopicPartitionsResponse:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=each.name) for each in request.topics])
        response: Any = node.handlers[MetadataRequest](asked, version)
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(
                    name=topic.name,
                    error_code=topic.error_code,
                    topic_id=topic.topic_id,
                    partitions=[
                        DescribeTopicPartitionsResponsePartition(
                            partition_index=each.partition_index,
                            leader_id=each.leader_id,
                            replica_nodes=each.replica_nodes,
                            isr_nodes=each.isr_nodes,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in response.topics
            ]
        )

    node.handlers[DescribeTopicPartitionsRequest] = describe_partitions
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: ListPartitionReassignmentsResponse()
    return node


@pytest.fixture
def node() -> FakeNode:
    """A broker that knows only the topic `orders`, with two partitions, until the test adds more."""
    return make_node(describe("orders"))


@pytest.fixture
def network(node: FakeNode) -> FakeNetwork:
    return FakeNetwork({WHERE: node})


@pytest.fixture
def ottla(network: FakeNetwork, monkeypatch: pytest.MonkeyPatch) -> RunOttla:
    """Runs `ottla` against the node."""
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr("ottla.cli.common.connection.make_network", lambda: network)
    return run_cli
