"""`ottla log-dirs`: filters by broker and topic, and offline directories."""

import json

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@pytest.fixture
def directories(node: FakeNode) -> FakeNode:
    def answer(request: DescribeLogDirsRequest, version: int) -> DescribeLogDirsResponse:
        topics = [
            DescribeLogDirsTopic(name=name, partitions=[DescribeLogDirsPartition(partition_index=0, partition_size=77)])
            for name in ("orders", "prices")
        ]
        healthy = DescribeLogDirsResult(log_dir="/data/one", topics=topics)
        broken = DescribeLogDirsResult(log_dir="/data/two", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return DescribeLogDirsResponse(results=[healthy, broken])

    node.handlers[DescribeLogDirsRequest] = answer
    return node


def test_pipe_gets_kafkas_lines(ottla: RunOttla, directories: FakeNode) -> None:
    lines = ottla("log-dirs", "--describe").lines
    assert lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    (broker,) = json.loads(lines[2])["brokers"]
    assert [each["logDir"] for each in broker["logDirs"]] == ["/data/one", "/data/two"]
    assert [each["error"] for each in broker["logDirs"]] == [None, "KAFKA_STORAGE_ERROR"]
    assert json.loads(ottla("log-dirs", "--json").out) == json.loads(lines[2])


def test_output_is_filtered_by_topic(ottla: RunOttla, directories: FakeNode) -> None:
    shown = json.loads(ottla("log-dirs", "--topic-list", "prices,absent", "--json").out)
    partitions = shown["brokers"][0]["logDirs"][0]["partitions"]
    assert [(each["partition"], each["size"]) for each in partitions] == [("prices-0", 77)]


def test_output_is_filtered_by_broker(ottla: RunOttla, directories: FakeNode) -> None:
    assert ottla("log-dirs", "--broker-list", "1").rc == 0
    absent = ottla("log-dirs", "--brokers", "1,4")
    assert (absent.rc, "broker 4 is not in the cluster, or is down: the brokers that are up are 1" in absent.err) == (1, True)
    address = ottla("log-dirs", "--broker-list", "localhost:9092")
    assert address.rc == 2
    assert "--bootstrap-server takes the address" in " ".join(address.err.split())


def test_error_of_a_broker_is_reported(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[DescribeLogDirsRequest] = lambda request, version: DescribeLogDirsResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    refused = ottla("log-dirs")
    assert (refused.rc, "broker 1 does not show its log directories" in refused.err) == (1, True)
