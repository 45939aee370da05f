"""`ottla cluster describe`."""

import json

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.unit.cli.conftest import WHERE, RunOttla
from tests.unit.cli.sick_cluster import CLUSTER_ID, sick_node

from ottla.client import health
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest

PROBLEMS = [
    ("offline-partition", "orders-1 has no leader (replicas 3, ISR none)"),
    ("fenced-broker", "broker 3 at three:9092 is fenced: it is down or cut off. To do: start it"),
    ("silent-voter", "controller 3 at c3:9093 does not answer: start it; its last fetch was 60 s ago"),
    ("under-replicated-partition", "orders-0 is under-replicated: broker 3 is down. To do: start broker 3"),
]


def test_lines_for_pipes(ottla: RunOttla) -> None:
    lines = ottla("cluster", "describe").lines
    assert lines[:4] == [
        f"ClusterId: {CLUSTER_ID}",
        "Controller: 2 (epoch 7)",
        "MetadataVersion: 4.1-IV1",
        "Topics: 1\tPartitions: 2",
    ]
    assert lines[4] == "Broker: 1\tState: active\tEndpoint: localhost:9092\tRack: here\tLeaders: 1\tReplicas: 1\tOutOfSync: 0"
    assert lines[6] == "Broker: 3\tState: fenced\tEndpoint: three:9092\tRack: -\tLeaders: 0\tReplicas: 2\tOutOfSync: 2"
    assert lines[7:] == [f"Problem: {kind}\t{text}" for kind, text in PROBLEMS]


def test_a_table_on_a_terminal_names_what_is_wrong(ottla: RunOttla) -> None:
    said = ottla("cluster", "describe", columns=100)
    assert said.lines[0] == f"cluster {CLUSTER_ID}"
    assert "active controller: 2 (epoch 7)" in said.lines[1]
    assert "active, controller" in said.out
    assert said.lines[said.lines.index("What is wrong") + 1 :] == [
        *(f"  {text}" for _, text in PROBLEMS),
        "  why, and what to do about partitions: ottla topics describe --check",
    ]


def test_json_has_everything(ottla: RunOttla) -> None:
    shown = json.loads(ottla("cluster", "describe", "--json").out)
    assert (shown["clusterId"], shown["controller"], shown["isHealthy"]) == (CLUSTER_ID, 2, False)
    assert [each["kind"] for each in shown["problems"]] == [kind for kind, _ in PROBLEMS]
    assert [each["partitions"] for each in shown["problems"]] == [["orders-1"], [], [], ["orders-0"]]
    assert [each["isFenced"] for each in shown["brokers"]] == [False, False, True]
    assert shown["features"] == {"metadata.version": 27}


def test_check_sets_the_exit_code(ottla: RunOttla, network: FakeNetwork) -> None:
    assert ottla("cluster", "describe").rc == 0
    assert ottla("cluster", "describe", "--check").rc == 1
    network.nodes[WHERE] = sick_node(is_sick=False)
    healthy = ottla("cluster", "describe", "--check", columns=100)
    assert healthy.rc == 0
    assert "Nothing is wrong" in healthy.out


@pytest.mark.parametrize("command", [("cluster", "describe"), ("brokers", "list")], ids=" ".join)
def test_state_without_a_controller_is_called_old(
    ottla: RunOttla, network: FakeNetwork, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(health, "QUORUM_ANSWER_S", 0.05)
    network.nodes[WHERE] = leaderless = sick_node(is_sick=False)
    leaderless.handlers[DescribeQuorumRequest] = lambda request, version: None
    said = ottla(*command, "--json")
    json.loads(said.out)
    assert said.err == (
        "ottla: no active controller: what is shown is the last state that broker 1 knew; start a majority of the controllers\n"
    )
    if command[0] == "cluster":
        assert ottla(*command, "--check").rc == 1


def test_no_node_is_one_sentence(ottla: RunOttla, network: FakeNetwork, node: FakeNode) -> None:
    network.nodes.clear()
    said = ottla("cluster", "describe")
    assert said.rc == 1
    assert len(said.err.splitlines()) == 1
    assert "ottla up" in said.err
