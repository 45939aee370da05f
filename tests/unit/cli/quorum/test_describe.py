"""`ottla quorum describe`."""

import json

from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.unit.cli.conftest import WHERE, RunOttla
from tests.unit.cli.sick_cluster import CLUSTER_ID, DIRECTORIES, NOW_MS, sick_node

from ottla.ids import uuid_text
from ottla.wire.messages.describe_cluster import DescribeClusterRequest


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
