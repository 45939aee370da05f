"""`ottla quorum add`."""

from pathlib import Path

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.sick_cluster import CLUSTER_ID, DIRECTORIES

from ottla.ids import uuid_text
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest

PROPERTIES = """process.roles=controller
node.id=5
listeners=CONTROLLER://c5:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=c1:9093
log.dirs={data}
"""


def test_an_observer_becomes_a_voter(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("quorum", "add", "4", "--endpoint", "c4:9093")
    assert said.rc == 0, said.err
    assert said.lines == [f"Added controller 4 with directory id {uuid_text(DIRECTORIES[4])} and endpoints c4:9093."]
    (request,) = node.asked_for(AddRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id) == (4, DIRECTORIES[4])
    assert [(each.name, each.host, each.port) for each in request.listeners] == [("CONTROLLER", "c4", 9093)]


def test_listener_names_and_ipv6_hosts(ottla: RunOttla, node: FakeNode) -> None:
    assert ottla("quorum", "add", "4", "--endpoint", "SECURE://[::1]:9093", "--endpoint", "c4:9094").rc == 0
    (request,) = node.asked_for(AddRaftVoterRequest)
    assert [(each.name, each.host, each.port) for each in request.listeners] == [
        ("SECURE", "::1", 9093),
        ("CONTROLLER", "c4", 9094),
    ]


def test_everything_from_the_controllers_own_files(ottla: RunOttla, node: FakeNode, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(PROPERTIES.format(data=tmp_path / "data"))
    assert run_cli("storage", "format", "-t", CLUSTER_ID, "-c", config, "--no-initial-controllers").rc == 0
    said = ottla("quorum", "add", "--server-config", config)
    assert said.rc == 0, said.err
    (request,) = node.asked_for(AddRaftVoterRequest)
    assert request.voter_id == 5
    assert uuid_text(request.voter_directory_id) in (tmp_path / "data" / "meta.properties").read_text()
    assert [(each.name, each.host, each.port) for each in request.listeners] == [("CONTROLLER", "c5", 9093)]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("9", "--endpoint", "c9:9093"), 1, "node 9 is not among the observers of the quorum, which are 4. Start it first"),
        (("3", "--endpoint", "c3:9093"), 1, "node 3 is a voter already"),
        (("3", "--endpoint", "c3:9093", "--directory-id", uuid_text(DIRECTORIES[3])), 1, "node 3 is a voter already"),
        (("4",), 2, "name the controller and where it listens"),
        (("4", "--endpoint", "c4"), 2, "--endpoint takes HOST:PORT or NAME://HOST:PORT, not 'c4'"),
        (("4", "--endpoint", "c4:99999"), 2, "--endpoint takes HOST:PORT"),
        (("4", "--endpoint", "c4:9093", "--directory-id", "short"), 1, "'short' is not a Kafka UUID"),
    ],
)
def test_mistakes_are_one_sentence(ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...], code: int, text: str) -> None:
    said = ottla("quorum", "add", *arguments)
    assert said.rc == code
    assert text in said.err.splitlines()[-1]
    assert not node.asked_for(AddRaftVoterRequest)
