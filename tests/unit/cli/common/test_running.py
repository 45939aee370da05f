"""A command that waits says for what."""

import json

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.common import running
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> tuple[str, ...]:
    """Options with which a command gives up soon."""
    monkeypatch.setattr(running, "SILENT_S", 0.1)
    monkeypatch.setattr(running, "_LOOK_S", 0.02)
    path = f"{tmp_path}/client.properties"
    with open(path, "w", encoding="utf-8") as file:
        file.write("default.api.timeout.ms=600\nrequest.timeout.ms=500\n")
    return ("--command-config", path)


def test_wait_for_a_controller_is_told_once_on_standard_error(
    ottla: RunOttla, node: FakeNode, impatient: tuple[str, ...]
) -> None:
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: None
    said = ottla("reassign", "list", "--json", *impatient)
    assert said.out == ""
    first, *more = said.err.splitlines()
    assert first == (
        "ottla: waiting for a controller: none has answered ListPartitionReassignments yet; "
        "see that a majority of the controllers is up"
    )
    assert not [line for line in more if "waiting" in line]


def test_command_that_is_answered_in_time_says_nothing(ottla: RunOttla, node: FakeNode, impatient: tuple[str, ...]) -> None:
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: ListPartitionReassignmentsResponse()
    said = ottla("reassign", "list", "--json", *impatient)
    assert (said.rc, said.err) == (0, "")
    json.loads(said.out)


def test_wait_for_a_broker_names_the_request(ottla: RunOttla, node: FakeNode, impatient: tuple[str, ...]) -> None:
    node.handlers[DescribeClusterRequest] = lambda request, version: None
    said = ottla("cluster", "id", *impatient)
    assert "ottla: waiting for a broker: it has not answered DescribeCluster yet\n" in said.err
    node.handlers[DescribeClusterRequest] = lambda request, version: DescribeClusterResponse(cluster_id="id")
    assert ottla("cluster", "id", *impatient).err == ""
