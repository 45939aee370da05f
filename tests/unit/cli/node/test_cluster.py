"""Formatting the nodes of a cluster, and how the end of one is told."""

import asyncio
import json
import signal
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from ottla.broker.cluster_settings import cluster_settings
from ottla.broker.formatting import FormatRefused
from ottla.cli.node import cluster as module
from ottla.cli.node.cluster import Child, _print_ready, _stop, default_ports, ending, format_nodes, keep_added, up_cluster
from ottla.cli.node.companions import Companions

PORTS = [(9092, 19092), (9093, 19093), (9094, 19094)]


def cluster_ids(data: Path) -> list[str]:
    files = sorted(data.glob("node-*/meta.properties"))
    return [line.partition("=")[2] for file in files for line in file.read_text().split() if line.startswith("cluster.id")]


def test_all_nodes_are_formatted_for_one_cluster_and_new_ones_for_the_same(tmp_path: Path) -> None:
    nodes = cluster_settings("127.0.0.1", PORTS, str(tmp_path))
    asyncio.run(format_nodes(nodes[1:2], tmp_path))
    (first,) = cluster_ids(tmp_path)
    asyncio.run(format_nodes(nodes, tmp_path))
    assert cluster_ids(tmp_path) == [first] * 3


def test_the_folder_of_a_single_node_is_refused(tmp_path: Path) -> None:
    nodes = cluster_settings("127.0.0.1", PORTS, str(tmp_path))
    asyncio.run(format_nodes(nodes[:1], tmp_path))
    inner = tmp_path / "node-1"
    with pytest.raises(FormatRefused, match="is the log directory of one node"):
        asyncio.run(format_nodes(cluster_settings("127.0.0.1", PORTS, str(inner)), inner))
    assert not list(inner.glob("node-*"))


def test_endings_are_told_in_words() -> None:
    assert ending(-9) == "signal SIGKILL"
    assert ending(1) == "exit code 1"


class StoppingProcess:
    """A node's process: it ends when it is released."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.is_terminated = False
        self._over = asyncio.Event()
        self.stdin = SimpleNamespace(write=self._written)

    def terminate(self) -> None:
        self.is_terminated = True

    def send_signal(self, number: int) -> None:
        assert number == signal.SIGCONT, "it is told to end once"

    def _written(self, data: bytes) -> None:
        self.returncode = 0
        self._over.set()

    async def wait(self) -> int:
        await self._over.wait()
        return 0


def test_nodes_leave_the_quorum_when_all_have_left_the_cluster() -> None:
    async def scenario() -> None:
        children = [Child({"node.id": str(node)}, StoppingProcess()) for node in (1, 2)]  # type: ignore[arg-type]  # fakes
        stopping = asyncio.ensure_future(_stop(children))
        children[0].left.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert all(child.process.is_terminated for child in children)  # type: ignore[attr-defined]
        assert children[0].process.returncode is None, "node 2 still needs a controller"
        children[1].left.set()
        await asyncio.wait_for(stopping, 30)

    asyncio.run(scenario())


def test_a_node_that_stops_alone_is_released_at_once() -> None:
    async def scenario() -> None:
        process = StoppingProcess()
        reader = process.stdout = asyncio.StreamReader()  # type: ignore[attr-defined]
        reader.feed_data(b'{"left": true}\n')
        reader.feed_eof()
        child = Child({"node.id": "1"}, process)  # type: ignore[arg-type]  # a fake
        await child.follow_output(asyncio.Event())
        assert child.left.is_set()
        assert process.returncode == 0

    asyncio.run(scenario())


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
    up_cluster("127.0.0.1", port, count, Path("/d"), False, overrides, 7000, None, "INFO", False, False, False, False)
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
    _print_ready(CHILDREN, Path("/d"), False, True, Companions())  # type: ignore[arg-type]  # fakes
    facts = json.loads(capsys.readouterr().out)
    assert facts["bootstrap_servers"] == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    assert [(each["node_id"], each["pid"]) for each in facts["nodes"]] == [(1, 41), (2, 42), (3, 43)]


def test_suggested_commands_find_the_cluster_if_any_node_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    _print_ready(CHILDREN, Path("/d"), False, False, Companions())  # type: ignore[arg-type]  # fakes
    said = capsys.readouterr().out
    assert "  export OTTLA_BOOTSTRAP_SERVERS=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094\n" in said
    assert "  ottla topics create greetings --partitions 6\n" in said


def test_added_nodes_are_brokers_with_the_next_ports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[dict[str, str]] = []

    async def keep(nodes: list[dict[str, str]], *_: object) -> None:
        started.extend(nodes)

    monkeypatch.setattr(module, "run_cluster", keep)
    keep_added(tmp_path, 4)
    up_cluster("127.0.0.1", 9092, 3, tmp_path, False, {}, 7000, None, "INFO", False, False, False, False)
    assert [each["node.id"] for each in started] == ["1", "2", "3", "4"]
    added = started[3]
    assert (added["process.roles"], added["listeners"]) == ("broker", "PLAINTEXT://127.0.0.1:9095")
    assert (added["ottla.metrics.port"], added["log.dirs"]) == ("7003", f"{tmp_path}/node-4")
    assert added["controller.quorum.voters"] == started[0]["controller.quorum.voters"]


def test_controllers_listen_ten_thousand_ports_above_their_brokers() -> None:
    assert default_ports(9092, 3) == [(9092, 19092), (9093, 19093), (9094, 19094)]
    assert default_ports(55_533, 3)[-1] == (55_535, 65_535)


def test_ports_without_room_are_refused_with_the_highest_that_has_it() -> None:
    with pytest.raises(ValueError, match="Choose a port up to 55533"):
        default_ports(55_534, 3)
