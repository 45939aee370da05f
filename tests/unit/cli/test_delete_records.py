"""`ottla delete-records`: arguments, the JSON file, and wrong usage."""

from pathlib import Path

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

ONE = '{"topic": "a", "partition": 0, "offset": 1}'


@pytest.fixture
def deleting(node: FakeNode) -> FakeNode:
    def answer(request: DeleteRecordsRequest, version: int) -> DeleteRecordsResponse:
        results = [
            DeleteRecordsPartitionResult(partition_index=each.partition_index, low_watermark=each.offset)
            for each in request.topics[0].partitions
        ]
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="orders", partitions=results)])

    node.handlers[DeleteRecordsRequest] = answer
    return node


def test_offsets_from_arguments_and_files(ottla: RunOttla, deleting: FakeNode, tmp_path: Path) -> None:
    assert ottla("delete-records", "orders:0:7", "orders:1:end").lines == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: orders-0\tlow_watermark: 7",
        "partition: orders-1\tlow_watermark: -1",
    ]
    content = '{"partitions": [{"topic": "orders", "partition": 1, "offset": 3}]}'
    file = tmp_path / "offsets.json"
    file.write_text(content)
    assert ottla("delete-records", "--offset-json-file", file).lines[-1] == "partition: orders-1\tlow_watermark: 3"
    assert ottla("delete-records", "--offset-json-file", "-", stdin=content.encode()).rc == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x", "is not JSON"),
        ("[]", "does not have the form expected"),
        ("{}", "(partitions is missing)"),
        ('{"partitions": [{"topic": "a", "partition": 0}]}', "(offset is missing)"),
        ('{"partitions": [{"topic": "a", "partition": "0", "offset": 1}]}', "does not have the form expected"),
        ('{"partitions": [{"topic": "a", "partition": true, "offset": 1}]}', "does not have the form expected"),
        ('{"partitions": [], "version": 1}', "there is nothing to delete"),
        ('{"partitions": [], "version": 2}', "only version 1 is supported"),
        (f'{{"partitions": [{ONE}, {ONE}]}}', "named twice"),
    ],
)
def test_malformed_files_are_refused(ottla: RunOttla, deleting: FakeNode, tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    refused = ottla("delete-records", "--offset-json-file", file)
    assert refused.rc == 2
    assert said in " ".join(refused.err.split())
    assert not deleting.asked


@pytest.mark.parametrize("place", ["orders", "orders:0", "orders:x:1", "orders:0:-5", "orders:0:soon", ":0:1"])
def test_malformed_arguments_are_refused(ottla: RunOttla, deleting: FakeNode, place: str) -> None:
    refused = ottla("delete-records", place)
    assert (refused.rc, "is not TOPIC:PARTITION:OFFSET" in refused.err) == (2, True)


def test_missing_arguments_are_refused(ottla: RunOttla, tmp_path: Path) -> None:
    assert "say which records" in ottla("delete-records").err
    assert "say which records" in ottla("delete-records", "a:0:1", "--offset-json-file", "x").err
    assert "cannot be read" in ottla("delete-records", "--offset-json-file", tmp_path / "absent").err
