"""Records and sizes of topics, from brokers that answer, refuse, or do not answer."""

import json

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla, describe, metadata_of

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import MetadataRequest


class Sizes:
    """A node whose partitions have offsets 5 to 15 and 100 bytes each; counts requests."""

    def __init__(self, node: FakeNode) -> None:
        self.refused_topics: set[str] = set()
        self.directories_code = 0
        self.requests: list[str] = []
        node.handlers |= {ListOffsetsRequest: self.list_offsets, DescribeLogDirsRequest: self.describe_log_dirs}

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        self.requests.append("ListOffsets")
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=5 if each.timestamp == -2 else 15,
                            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED if topic.name in self.refused_topics else 0,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def describe_log_dirs(self, request: DescribeLogDirsRequest, version: int) -> DescribeLogDirsResponse:
        self.requests.append("DescribeLogDirs")
        if self.directories_code:
            return DescribeLogDirsResponse(error_code=self.directories_code)
        topics = [
            DescribeLogDirsTopic(
                name=topic.topic,
                partitions=[DescribeLogDirsPartition(partition_index=each, partition_size=100) for each in topic.partitions],
            )
            for topic in request.topics or ()
        ]
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/data", topics=topics)])


@pytest.fixture
def sizes(node: FakeNode) -> Sizes:
    node.handlers[MetadataRequest] = metadata_of(describe("orders", 2), describe("prices", 1), describe("stuck", 1, leader=-1))
    return Sizes(node)


def listed(ottla: RunOttla) -> dict[str, tuple[object, object, object]]:
    said = ottla("topics", "list", "--json")
    assert (said.rc, said.err) == (0, "")
    return {each["name"]: (each["partitions"], each["records"], each["sizeBytes"]) for each in json.loads(said.out)}


def test_partitions_are_summed_with_one_round_of_requests_per_broker(ottla: RunOttla, sizes: Sizes) -> None:
    assert listed(ottla) == {"orders": (2, 20, 200), "prices": (1, 10, 100), "stuck": (1, None, None)}
    assert sorted(sizes.requests) == ["DescribeLogDirs", "ListOffsets", "ListOffsets"]


def test_what_a_broker_refuses_stays_empty(ottla: RunOttla, sizes: Sizes) -> None:
    sizes.refused_topics = {"prices"}
    sizes.directories_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert listed(ottla) == {"orders": (2, 20, None), "prices": (1, None, None), "stuck": (1, None, None)}


def test_broker_that_does_not_answer_leaves_cells_empty(
    ottla: RunOttla, node: FakeNode, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.cli.topics.command.ANSWER_S", 0.2)
    node.handlers |= {DescribeLogDirsRequest: lambda *_: None, ListOffsetsRequest: lambda *_: None}
    assert listed(ottla) == {"orders": (2, None, None), "prices": (1, None, None), "stuck": (1, None, None)}


def test_terminal_shows_a_table_and_pipes_get_names_without_asking_for_sizes(ottla: RunOttla, sizes: Sizes) -> None:
    table = ottla("topics", "list", columns=80).lines
    assert [line.split() for line in table if line][:2] == [
        ["Topic", "Partitions", "Records", "Size"],
        ["orders", "2", "20", "200", "bytes"],
    ]
    assert next(line for line in table if line.startswith("stuck")).split() == ["stuck", "1"]
    sizes.requests.clear()
    assert ottla("topics", "list").lines == ["orders", "prices", "stuck"]
    assert ottla("topics", "list", "--plain", columns=80).lines == ["orders", "prices", "stuck"]
    assert sizes.requests == []
