"""`ottla elect-leaders`: which partitions are meant."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.wire.messages.elect_leaders import ElectLeadersRequest

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
