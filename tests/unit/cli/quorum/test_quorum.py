"""The `quorum` verb."""

import json
from pathlib import Path

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.conftest import WHERE, RunOttla
from tests.unit.cli.sick_cluster import CLUSTER_ID, DIRECTORIES, NOW_MS, sick_node

from ottla.cli.quorum import check_may_join, directory_of
from ottla.client.admin.quorum import QuorumInfo, QuorumReplica
from ottla.errors import OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def test_help_lists_the_actions(ottla: RunOttla) -> None:
    said = ottla("quorum", "--help")
    assert said.rc == 0
    assert all(action in said.out for action in ("describe", "add", "remove", "Examples:"))


def test_kafkas_name_of_the_tool_works(ottla: RunOttla) -> None:
    assert ottla("metadata-quorum", "describe", "--status").rc == 0


def test_status_in_kafkas_lines(ottla: RunOttla) -> None:
    status = dict(line.split(":", 1) for line in ottla("quorum", "describe").lines)
    assert {name: value.strip() for name, value in status.items() if not name.startswith("Current")} == {
        "ClusterId": CLUSTER_ID,
        "LeaderId": "2",
        "LeaderEpoch": "7",
        "HighWatermark": "1000",
        "MaxFollowerLag": "100",
        "MaxFollowerLagTimeMs": "60000",
    }
    voters = json.loads(status["CurrentVoters"])
    assert {each["id"] for each in voters} == {1, 2, 3}
    assert voters[0] == {"id": 2, "directoryId": uuid_text(DIRECTORIES[2]), "endpoints": ["CONTROLLER://c2:9093"]}
    assert json.loads(status["CurrentObservers"]) == [{"id": 4, "directoryId": uuid_text(DIRECTORIES[4])}]


def test_replication_in_kafkas_columns(ottla: RunOttla) -> None:
    heading, *rows = [
        [cell.strip() for cell in line.rstrip("\t").split("\t")] for line in ottla("quorum", "describe", "--replication").lines
    ]
    assert heading == [
        "NodeId",
        "DirectoryId",
        "LogEndOffset",
        "Lag",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
        "Status",
    ]
    assert rows[0] == ["2", uuid_text(DIRECTORIES[2]), "1000", "0", str(NOW_MS), str(NOW_MS), "Leader"]
    assert [(row[0], row[3], row[-1]) for row in rows] == [
        ("2", "0", "Leader"),
        ("1", "0", "Follower"),
        ("3", "100", "Follower"),
        ("4", "10", "Observer"),
    ]
    assert "ms ago" in ottla("quorum", "describe", "--replication", "--human-readable").out


def test_a_table_names_silent_voters(ottla: RunOttla, network: FakeNetwork) -> None:
    said = ottla("quorum", "describe", columns=120)
    assert said.lines[0] == f"metadata quorum of cluster {CLUSTER_ID}"
    assert "leader: 2, epoch: 7, high watermark: 1000" in said.lines[1]
    assert said.lines[-2:] == [
        "What is wrong",
        "  controller 3 at c3:9093 does not answer: start it; its last fetch was 60 s ago",
    ]
    network.nodes[WHERE] = sick_node(is_sick=False)
    assert "wrong" not in ottla("quorum", "describe", columns=120).out


def test_json(ottla: RunOttla) -> None:
    shown = json.loads(ottla("quorum", "describe", "--json").out)
    assert (shown["leader"], shown["leaderEpoch"], shown["highWatermark"]) == (2, 7, 1000)
    assert [(each["id"], each["lag"]) for each in shown["voters"]] == [(2, 0), (1, 0), (3, 100)]
    assert shown["voters"][0]["endpoints"] == [{"listener": "CONTROLLER", "host": "c2", "port": 9093}]
    assert [each["id"] for each in shown["observers"]] == [4]


def test_two_views_at_once_are_refused(ottla: RunOttla) -> None:
    assert ottla("quorum", "describe", "--status", "--replication").rc == 2


def test_controllers_can_be_asked_directly(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("quorum", "describe", "--bootstrap-controller", "localhost:9092")
    assert said.rc == 0, said.err
    assert {each.endpoint_type for each in node.asked_for(DescribeClusterRequest)} == {2}
    said = ottla("quorum", "--bootstrap-controller", "localhost:9092", "describe", "-b", "localhost:9092")
    assert said.rc == 2
    assert "exclude each other" in said.err


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


SPELLINGS = (
    ("remove", "3"),
    ("remove", "3", "--directory-id", uuid_text(DIRECTORIES[3])),
    ("remove-controller", "--controller-id", "3", "--controller-directory-id", uuid_text(DIRECTORIES[3])),
)


@pytest.mark.parametrize("arguments", SPELLINGS)
def test_a_voter_is_removed(ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...]) -> None:
    said = ottla("quorum", *arguments)
    assert (said.rc, said.lines) == (0, [f"Removed controller 3 with directory id {uuid_text(DIRECTORIES[3])}."])
    assert "names only this controller" in said.err, "nodes may find no other controller"
    (request,) = node.asked_for(RemoveRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id) == (3, DIRECTORIES[3])


def test_a_node_without_a_vote_is_named(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("quorum", "remove", "4")
    assert said.rc == 1
    assert said.err.startswith("ottla: node 4 is not among the voters of the quorum, which are 1, 2, 3.")
    assert not node.asked_for(RemoveRaftVoterRequest)


def test_a_refusal_is_one_sentence(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[RemoveRaftVoterRequest] = lambda request, version: RemoveRaftVoterResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message="kraft.version 0"
    )
    said = ottla("quorum", "remove", "3")
    assert said.rc == 1
    warning, refusal = said.err.splitlines()
    assert "names only this controller" in warning
    assert refusal.startswith("ottla: controller 3 was not removed from the voters: kraft.version 0")


def test_the_node_must_be_named(ottla: RunOttla) -> None:
    assert ottla("quorum", "remove").rc == 2


ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def replica(node: int, directory: Uuid) -> QuorumReplica:
    return QuorumReplica(node, directory, 0, None, None)


def test_the_only_one_with_the_id_is_meant() -> None:
    assert directory_of((replica(1, ONE), replica(2, TWO)), 2, "voter", None, "") == TWO


def test_two_with_the_same_id_have_to_be_told_apart() -> None:
    with pytest.raises(OttlaError, match="choose one with --directory-id"):
        directory_of((replica(1, ONE), replica(1, TWO)), 1, "voter", None, "")


def test_fixed_voters_have_no_directory_id() -> None:
    with pytest.raises(OttlaError, match=r"fixed by controller\.quorum\.voters \(kraft\.version 0\)"):
        directory_of((replica(1, ZERO_UUID),), 1, "voter", None, "")


def quorum(voters: dict[int, Uuid], observers: dict[int, Uuid]) -> QuorumInfo:
    return QuorumInfo(1, 1, 0, *(tuple(replica(*each) for each in found.items()) for found in (voters, observers)), {})


def test_voters_of_a_static_quorum_cannot_change() -> None:
    static = quorum({1: ZERO_UUID}, {2: TWO})
    with pytest.raises(OttlaError, match=r"kraft\.version 0.*--initial-controllers.*upgrade --feature kraft\.version=1"):
        check_may_join(static, 0, 2, None)
    check_may_join(static, 1, 2, None)


def test_voter_whose_disk_was_lost_may_join_with_its_new_directory() -> None:
    found = quorum({1: ONE}, {1: TWO})
    check_may_join(found, 1, 1, None)
    with pytest.raises(OttlaError, match="node 1 is a voter already"):
        check_may_join(found, 1, 1, uuid_text(ONE))
