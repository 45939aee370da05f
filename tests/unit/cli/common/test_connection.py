"""A command that waits says for what."""

import json
from pathlib import Path

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.tls_server import port_of_tls
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.sick_cluster import sick_node

from ottla.cli.common import connection
from ottla.testing import Broker
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@pytest.fixture
def impatient(ottla: RunOttla, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> tuple[str, ...]:
    """Options with which a command gives up soon."""
    ottla("reassign", "list")  # imports what a first request needs, which may take longer than SILENT_S here
    monkeypatch.setattr(connection, "SILENT_S", 0.1)
    monkeypatch.setattr(connection, "_LOOK_S", 0.02)
    path = f"{tmp_path}/client.properties"
    with open(path, "w", encoding="utf-8") as file:
        file.write("default.api.timeout.ms=2000\nrequest.timeout.ms=1800\n")
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


def test_command_that_is_answered_in_time_says_nothing(
    ottla: RunOttla, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SILENT_S", 60.0)
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: ListPartitionReassignmentsResponse()
    said = ottla("reassign", "list", "--json")
    assert (said.rc, said.err) == (0, "")
    json.loads(said.out)


def test_wait_for_a_broker_names_the_request(ottla: RunOttla, node: FakeNode, impatient: tuple[str, ...]) -> None:
    node.handlers[DescribeClusterRequest] = lambda request, version: None
    said = ottla("cluster", "id", *impatient)
    assert "ottla: waiting for a broker: it has not answered DescribeCluster yet\n" in said.err


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that count as long after a moment."""
    for name, seconds in (("SILENT_S", 0.1), ("ANSWER_S", 0.4), ("_LOOK_S", 0.02)):
        monkeypatch.setattr(connection, name, seconds)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("command", [("reassign", "list"), ("quorum", "describe"), ("topics", "create", "new")])
def test_command_without_an_active_controller_fails_soon(ottla: RunOttla, node: FakeNode, command: tuple[str, ...]) -> None:
    for request in (ListPartitionReassignmentsRequest, DescribeQuorumRequest, CreateTopicsRequest):
        node.handlers[request] = lambda request, version: None
    said = ottla(*command)
    assert said.rc == 1
    error = said.err.splitlines()[-1]
    assert "s, and the cluster has no active controller. Start a majority of the controllers; until then" in error
    assert error.endswith("--command-property default.api.timeout.ms=60000")


@pytest.mark.usefixtures("soon")
def test_explicit_timeout_wins_over_the_missing_controller(ottla: RunOttla, node: FakeNode) -> None:
    for request in (ListPartitionReassignmentsRequest, DescribeQuorumRequest):
        node.handlers[request] = lambda request, version: None
    said = ottla("reassign", "list", "--command-property", "default.api.timeout.ms=900", "request.timeout.ms=800")
    assert said.rc == 1
    assert "no active controller" not in said.err


@pytest.mark.usefixtures("soon")
def test_slow_controller_is_waited_for(ottla: RunOttla, node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_S", 60.0)  # for a busy machine: within it the quorum names its leader
    answers = [None, ListPartitionReassignmentsResponse()]
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: answers.pop(0)
    node.handlers[DescribeQuorumRequest] = sick_node().handlers[DescribeQuorumRequest]
    assert ottla("reassign", "list", "--command-property", "request.timeout.ms=700").rc == 0
    assert not answers


def test_ports_of_tls_and_of_plain_text_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "ssl.properties").write_text("security.protocol=SSL\n")
    with Broker() as broker, port_of_tls(tmp_path) as port:
        plain, tls = broker.bootstrap_servers, f"127.0.0.1:{port}"
        said = run_cli("topics", "list", "-b", plain, "--command-config", tmp_path / "ssl.properties")
        assert said.err == (
            f"ottla: no broker can be reached: {plain} speaks no TLS: set security.protocol to PLAINTEXT, or give the address "
            "of a TLS listener (--command-config takes settings)\n"
        )
        said = run_cli("topics", "list", "-b", tls)
        assert said.err == (
            f"ottla: no broker can be reached: {tls} speaks TLS: set security.protocol to SSL, or give the address of a plain "
            "listener (--command-config takes settings)\n"
        )
