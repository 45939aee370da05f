"""`ottla elect-leaders`: exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest


def test_exit_code_is_one_if_an_election_failed(ottla: RunOttla, electing: FakeNode) -> None:
    assert ottla("elect-leaders", "orders:0").rc == 0
    assert ottla("elect-leaders", "orders:1").rc == 1
    assert ottla("elect-leaders", "orders").rc == 1


PREFERRED, UNCLEAN = 0, 1


def asked(node: FakeNode) -> tuple[int, list[tuple[str, list[int]]] | None]:
    (request,) = node.asked_for(ElectLeadersRequest)
    named: Any = request.topic_partitions
    return request.election_type, None if named is None else [(each.topic, each.partitions) for each in named]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("orders",), (PREFERRED, [("orders", [0, 1])])),
        (("orders:0",), (PREFERRED, [("orders", [0])])),
        (("--topic", "orders"), (PREFERRED, [("orders", [0, 1])])),
        (("--topic", "orders", "--partition", 1, "--partition", 0), (PREFERRED, [("orders", [1, 0])])),
        (("--all",), (PREFERRED, None)),
        (("--all-topic-partitions", "--election-type", "UNCLEAN", "--yes"), (UNCLEAN, None)),
        (("orders:0", "--unclean", "--yes"), (UNCLEAN, [("orders", [0])])),
        (("--path-to-json-file", "-"), (PREFERRED, [("orders", [1])])),
    ],
    ids=str,
)
def test_partitions_and_kinds_of_elections(
    ottla: RunOttla, electing: FakeNode, arguments: tuple[object, ...], expected: object
) -> None:
    said = ottla("elect-leaders", *arguments, stdin=b'{"partitions": [{"topic": "orders", "partition": 1}]}')
    assert said.rc in (0, 1), said.err
    assert asked(electing) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say which partitions, one way"),
        (("orders", "--all"), "say which partitions, one way"),
        (("--partition", 1, "--all"), "--partition needs --topic"),
        (("orders:x",), "neither TOPIC nor TOPIC:PARTITION"),
        ((":1",), "neither TOPIC nor TOPIC:PARTITION"),
        (("orders:1", "orders:1"), "orders-1 is named twice"),
        (("orders", "--unclean", "--election-type", "preferred"), "exclude each other"),
        (("--path-to-json-file", "-"), "is not JSON"),
    ],
    ids=str,
)
def test_wrong_usage(ottla: RunOttla, electing: FakeNode, arguments: tuple[object, ...], said: str) -> None:
    ended = ottla("elect-leaders", *arguments)
    assert ended.rc == 2
    assert said in ended.err
    assert not electing.asked


def test_topic_that_does_not_exist(ottla: RunOttla, electing: FakeNode) -> None:
    said = ottla("elect-leaders", "nothing:0")
    assert said.rc == 1
    assert "topic nothing does not exist" in said.err


def test_json_file(ottla: RunOttla, electing: FakeNode, tmp_path: Path) -> None:
    file = tmp_path / "partitions.json"
    file.write_text('{"partitions": [{"topic": "orders", "partition": 0}], "version": 1}')
    assert ottla("elect-leaders", "--path-to-json-file", file).rc == 0
    file.write_text('{"partitions": []}')
    assert "nothing to elect" in ottla("elect-leaders", "--path-to-json-file", file).err


def test_unclean_election_is_held_only_after_yes(ottla: RunOttla, electing: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.cli.common.output.can_ask", lambda: True)
    asked_questions = []

    def answer_no(question: str, **flags: Any) -> bool:
        asked_questions.append(question)
        return False

    monkeypatch.setattr("click.confirm", answer_no)
    said = ottla("elect-leaders", "orders:0", "--unclean")
    assert said.rc == 1
    assert "nothing was changed" in said.err
    assert asked_questions == ["Elect leaders out of sync for orders-0, and lose these records?"]
    assert not electing.asked_for(ElectLeadersRequest)


@pytest.mark.parametrize(
    "arguments",
    [
        ("elect-leaders", "orders:0", "--unclean"),
        ("elect-leaders", "orders:0", "--election-type", "unclean"),
        ("leader-election", "--election-type", "UNCLEAN", "--topic", "orders", "--partition", "0"),
    ],
)
def test_unclean_election_without_a_terminal_needs_yes(ottla: RunOttla, electing: FakeNode, arguments: tuple[str, ...]) -> None:
    said = ottla(*arguments)
    assert (said.rc, said.err.splitlines()[-1]) == (1, "ottla: nothing was changed: add --yes to say that you mean it")
    assert not electing.asked_for(ElectLeadersRequest)
    assert ottla(*arguments, "--yes").rc == 0
    assert electing.asked_for(ElectLeadersRequest)


def test_new_leader_and_its_log_end_are_named(ottla: RunOttla, electing: FakeNode) -> None:
    warning = ottla("elect-leaders", "orders:0", "--unclean").err.splitlines()[0]
    assert warning.startswith("ottla: an unclean election makes broker 1 lead orders-0, and loses what was acknowledged while")
    assert ". The log of broker 1 ends at offset 57. " in warning
    (asked,) = electing.asked_for(ListOffsetsRequest)
    assert asked.replica_id == -2, "brokers that do not lead answer only this one"


def test_unclean_election_says_what_is_lost(ottla: RunOttla, electing: FakeNode) -> None:
    said = ottla("elect-leaders", "orders:0", "--unclean", "--yes")
    assert said.rc == 0
    assert said.out == "Successfully completed leader election (UNCLEAN) for partitions orders-0\n"
    before, after = said.err.splitlines()
    assert before.startswith("ottla: an unclean election makes broker 1 lead orders-0, and loses what was acknowledged while")
    assert after == (
        "ottla: orders-0: broker 1 leads with its own log, which ends at offset 57: what was acknowledged from there on is "
        "lost, and replicas that come back cut it off"
    )


def test_outcomes_of_partitions(ottla: RunOttla, electing: FakeNode) -> None:
    said = ottla("elect-leaders", "orders", "--json")
    assert said.rc == 1
    assert [(each["partition"], each["result"], each["leaderBefore"], each["leader"]) for each in json.loads(said.out)] == [
        (0, "elected", None, 1),
        (1, "failed", None, None),
    ]
    lines = ottla("elect-leaders", "orders:1").lines
    assert lines[0].startswith("Error completing leader election (PREFERRED) for partition: orders-1: no leader of partition")
    table = ottla("elect-leaders", "orders", columns=100)
    assert table.lines[3].split()[:5] == ["orders", "1", "failed", "none", "none"]
    assert ottla("elect-leaders", "--all").out == "No partition needs an election (preferred).\n"
