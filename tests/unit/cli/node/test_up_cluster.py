"""`ottla up --nodes`: what it refuses, warns of and prints. `tests/compat/quorum/test_up_nodes.py` runs it."""

import json
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from ottla.cli.node import up_cluster as module
from ottla.cli.node.cluster import keep_added
from ottla.cli.node.up_cluster import _tell, up_cluster

CHILDREN = [
    SimpleNamespace(
        node_id=node, bootstrap_servers=f"127.0.0.1:{9091 + node}", cluster_id="c", process=SimpleNamespace(pid=40 + node)
    )
    for node in (1, 2, 3)
]


def run(monkeypatch: pytest.MonkeyPatch, count: int, port: int = 9092, **overrides: str) -> list[dict[str, str]]:
    """The settings of the nodes that the command would start."""
    started: list[dict[str, str]] = []

    async def keep(nodes: list[dict[str, str]], *_: object) -> None:
        started.extend(nodes)

    monkeypatch.setattr(module, "run_cluster", keep)
    up_cluster("127.0.0.1", port, count, Path("/d"), overrides, 7000, None, "INFO", False, False)
    return started


def test_overrides_and_metrics_ports_reach_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = run(monkeypatch, 3, **{"num.partitions": "6"})
    assert [each["num.partitions"] for each in nodes] == ["6"] * 3
    assert [each["ottla.metrics.port"] for each in nodes] == ["7000", "7001", "7002"]


@pytest.mark.parametrize(("count", "is_warned"), [(2, True), (3, False), (4, True)])
def test_an_even_number_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int, is_warned: bool
) -> None:
    run(monkeypatch, count)
    assert ("prefer an odd number" in capsys.readouterr().err) == is_warned


def test_one_value_for_what_differs_from_node_to_node_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(click.UsageError, match=r"--set node\.id: with --nodes each node has its own"):
        run(monkeypatch, 3, **{"node.id": "4"})


def test_ports_without_room_are_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(click.UsageError, match="leaves no room"):
        run(monkeypatch, 3, port=60_000)


def test_port_zero_gives_every_node_ports_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = [each["listeners"] for each in run(monkeypatch, 3, port=0)]
    assert len({address.rpartition(":")[2] for each in listeners for address in each.split(",")}) == 6


def test_json_names_every_node(capsys: pytest.CaptureFixture[str]) -> None:
    _tell(CHILDREN, Path("/d"), as_json=True)  # type: ignore[arg-type]  # fakes
    facts = json.loads(capsys.readouterr().out)
    assert facts["bootstrap_servers"] == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    assert [(each["node_id"], each["pid"]) for each in facts["nodes"]] == [(1, 41), (2, 42), (3, 43)]


def test_suggested_commands_find_the_cluster_if_any_node_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    _tell(CHILDREN, Path("/d"), as_json=False)  # type: ignore[arg-type]  # fakes
    said = capsys.readouterr().out
    assert "  export OTTLA_BOOTSTRAP_SERVERS=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094\n" in said
    assert "  ottla topics create greetings --partitions 6\n" in said


def test_added_nodes_are_brokers_with_the_next_ports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[dict[str, str]] = []

    async def keep(nodes: list[dict[str, str]], *_: object) -> None:
        started.extend(nodes)

    monkeypatch.setattr(module, "run_cluster", keep)
    keep_added(tmp_path, 4)
    up_cluster("127.0.0.1", 9092, 3, tmp_path, {}, 7000, None, "INFO", False, False)
    assert [each["node.id"] for each in started] == ["1", "2", "3", "4"]
    added = started[3]
    assert (added["process.roles"], added["listeners"]) == ("broker", "PLAINTEXT://127.0.0.1:9095")
    assert (added["ottla.metrics.port"], added["log.dirs"]) == ("7003", f"{tmp_path}/node-4")
    assert added["controller.quorum.voters"] == started[0]["controller.quorum.voters"]
