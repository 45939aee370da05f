"""`ottla brokers api-versions`. That Kafka's tool prints the same is in tests/compat/broker/tools."""

import json

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.brokers import _text
from ottla.client.api_versions import ServedApi


@pytest.mark.parametrize("verb", [("brokers", "api-versions"), ("broker-api-versions",), ("brokers", "--api-versions")])
def test_lines_of_kafkas_tool(ottla: RunOttla, verb: tuple[str, ...]) -> None:
    said = ottla(*verb, "1" if len(verb) == 2 and verb[1] == "api-versions" else "--plain")
    assert said.lines[0] == "localhost:9092 (id: 1 rack: here isFenced: false) -> ("
    assert "\tMetadata(3): 0 to 13 [usable: 13]," in said.lines
    assert ")" in said.lines


def test_broker_that_does_not_answer_makes_the_exit_code_one(ottla: RunOttla) -> None:
    said = ottla("brokers", "api-versions")
    assert said.rc == 1
    assert any(line.startswith("two:9092 (id: 2 rack: null isFenced: false) -> ERROR: ") for line in said.lines)


def test_table_and_json(ottla: RunOttla) -> None:
    said = ottla("brokers", "api-versions", "1", columns=100)
    assert said.lines[0] == "APIs of broker 1"
    assert ["Metadata", "3", "0", "to", "13", "13"] in [line.split() for line in said.lines]
    (shown,) = json.loads(ottla("brokers", "api-versions", "1", "--json").out)
    assert (shown["broker"], shown["host"], shown["port"]) == (1, "localhost", 9092)
    assert {"key": 3, "name": "Metadata", "oldest": 0, "newest": 13, "usable": 13} in shown["apis"]


def test_unknown_broker_is_refused(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("brokers", "api-versions", "9")
    assert said.rc == 1
    assert "broker 9 is not in the cluster, or is down" in said.err


@pytest.mark.parametrize(
    ("api", "text"),
    [
        (ServedApi(1, "Fetch", 19, 20, None), "Fetch(1): 19 to 20 [unusable: node too new]"),
        (ServedApi(1, "Fetch", 0, 3, None), "Fetch(1): 0 to 3 [unusable: node too old]"),
        (ServedApi(999, "", 0, 0, None), "UNKNOWN(999): 0"),
        (ServedApi(17, "SaslHandshake", None, None, None), "SaslHandshake(17): UNSUPPORTED"),
    ],
)
def test_versions_without_a_common_one(api: ServedApi, text: str) -> None:
    assert _text(api) == text
