"""`ottla cluster describe`."""

import json

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.unit.cli.conftest import WHERE, RunOttla
from tests.unit.cli.sick_cluster import CLUSTER_ID, sick_node

from ottla.cli.cluster import Held, warnings
from ottla.client import health
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

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


def test_help_lists_the_actions(ottla: RunOttla) -> None:
    said = ottla("cluster", "--help")
    assert said.rc == 0
    assert all(action in said.out for action in ("describe", "id", "unregister", "Examples:"))


def test_a_misspelt_action_gets_the_right_one(ottla: RunOttla) -> None:
    said = ottla("cluster", "descibe")
    assert said.rc == 2
    assert "did you mean describe?" in said.err


def test_the_id_as_kafka_cluster_prints_it(ottla: RunOttla) -> None:
    assert ottla("cluster", "id").lines == [f"Cluster ID: {CLUSTER_ID}"]
    assert ottla("cluster", "cluster-id").lines == [f"Cluster ID: {CLUSTER_ID}"]
    assert ottla("cluster", "id", columns=80).lines == [CLUSTER_ID]
    assert json.loads(ottla("cluster", "id", "--json").out) == {"clusterId": CLUSTER_ID}


@pytest.mark.parametrize("arguments", [("3",), ("--id", "3")])
def test_a_fenced_broker_is_removed_and_what_it_holds_is_said(
    ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...]
) -> None:
    said = ottla("cluster", "unregister", *arguments, "--yes")
    assert (said.rc, said.lines) == (0, ["Broker 3 is no longer registered."])
    assert [each.broker_id for each in node.asked_for(UnregisterBrokerRequest)] == [3]
    only, held, voter = said.err.splitlines()
    assert only.startswith("ottla: broker 3 has the only replica of orders-1: nothing in there can be read without it")
    assert held.startswith("ottla: broker 3 holds 2 replicas: they stay under-replicated until they are reassigned")
    assert voter == ("ottla: node 3 is a voter of the metadata quorum, and stays one: `ottla quorum remove 3` takes its vote")


def test_without_a_terminal_it_needs_yes(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("cluster", "unregister", "3")
    assert said.rc == 1
    assert said.err.endswith("ottla: nothing was changed: add --yes to say that you mean it\n")
    assert node.asked_for(UnregisterBrokerRequest) == []


def test_a_live_broker_is_refused_without_force(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("cluster", "unregister", "2", "--yes")
    assert said.rc == 1
    assert said.err.startswith("ottla: broker 2 at two:9092 is alive, so it was not unregistered. Stop it")
    assert node.asked_for(UnregisterBrokerRequest) == []
    assert ottla("cluster", "unregister", "2", "--yes", "--force").rc == 0
    assert [each.broker_id for each in node.asked_for(UnregisterBrokerRequest)] == [2]


def test_last_replicas_in_sync_are_warned_of() -> None:
    (text, _) = warnings(4, Held(["a-0"], ["a-0"], [], ["a-0"], is_voter=False))
    assert text.startswith("no other replica of a-0 is in sync: without broker 4 there is no leader")


def test_a_refusal_is_one_sentence(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[UnregisterBrokerRequest] = lambda request, version: UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED
    )
    said = ottla("cluster", "unregister", "9")
    assert said.rc == 1
    assert said.err.startswith("ottla: broker 9 was not unregistered")
    assert "BROKER_ID_NOT_REGISTERED" in said.err


def test_the_broker_must_be_named(ottla: RunOttla) -> None:
    said = ottla("cluster", "unregister")
    assert said.rc == 2
    assert "name the broker, for example: ottla cluster unregister 4" in said.err
