"""Formatting the nodes of a cluster, and how the end of one is told."""

import asyncio
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.broker.cluster_settings import cluster_settings
from ottla.broker.formatting import FormatRefused
from ottla.cli.node.cluster import Child, _stop, ending, format_nodes

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
