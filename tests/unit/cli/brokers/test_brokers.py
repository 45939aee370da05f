"""The `brokers` verb."""

import json

import click
import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.brokers import _text, complete_brokers
from ottla.client.api_versions import ServedApi


def test_help_lists_the_actions(ottla: RunOttla) -> None:
    said = ottla("brokers", "--help")
    assert said.rc == 0
    assert all(action in said.out for action in ("list", "describe", "Examples:"))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.rstrip("\t").split("\t")]


def test_lines_for_pipes_have_a_tab_after_each_cell(ottla: RunOttla) -> None:
    heading, *rows = map(cells, ottla("brokers", "list").lines)
    assert heading == ["BROKER", "STATE", "ENDPOINT", "RACK", "LEADERS", "REPLICAS", "OUT-OF-SYNC"]
    assert rows == [
        ["1", "active", "localhost:9092", "here", "1", "1", "0"],
        ["2", "active, controller", "two:9092", "-", "0", "0", "0"],
        ["3", "fenced", "three:9092", "-", "0", "2", "2"],
    ]


def test_a_table_on_a_terminal(ottla: RunOttla) -> None:
    said = ottla("brokers", "list", columns=100)
    assert "Out of sync" in said.lines[0]
    assert len([line for line in said.lines if line.strip()]) == 4


def test_json(ottla: RunOttla) -> None:
    shown = json.loads(ottla("brokers", "list", "--json").out)
    assert [(each["broker"], each["isFenced"], each["isController"]) for each in shown] == [
        (1, False, False),
        (2, False, True),
        (3, True, False),
    ]


def test_log_directories_with_sizes_and_states(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "1")
    assert said.rc == 0
    assert said.lines[0].startswith("Broker: 1\tState: active\tEndpoint: localhost:9092\tRack: here")
    assert said.lines[1:] == [
        "\tLogDir: /data\tState: online\tReplicas: 1\tBytes: 4096",
        "\tLogDir: /broken\tState: KAFKA_STORAGE_ERROR\tReplicas: 0\tBytes: 0",
    ]


def test_a_fenced_broker_is_not_asked_and_is_no_failure(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "3")
    assert said.rc == 0
    assert said.lines[1] == "\tLogDirs: the broker is fenced: it is down or cut off"


def test_a_broker_that_does_not_answer_sets_the_exit_code(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "1", "2", "--json")
    assert said.rc == 1
    first, second = json.loads(said.out)
    assert [each["path"] for each in first["logDirs"]] == ["/data", "/broken"]
    assert second["logDirs"] is None
    assert "broker 2" in second["error"]


def test_a_table_on_a_terminal_describe(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "1", columns=100)
    assert said.lines[0] == "broker 1 at localhost:9092  (active)"
    assert "leads 1 partition, holds 1 replica, 0 of them out of sync" in said.out
    assert "offline" in said.out


def test_an_unknown_broker_is_named_with_those_there_are(ottla: RunOttla) -> None:
    said = ottla("brokers", "describe", "9")
    assert (said.rc, said.err) == (1, "ottla: broker 9 is not in the cluster, which has 1, 2, 3\n")


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


def test_ids_are_completed(network: FakeNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr("ottla.cli.common.connection.make_network", lambda: network)
    context = click.Context(click.Command("describe"))
    assert complete_brokers(context, click.Argument(["brokers"]), "") == ["1", "2"]
    assert complete_brokers(context, click.Argument(["brokers"]), "2") == ["2"]
