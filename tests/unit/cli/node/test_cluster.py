"""Formatting the nodes of a cluster, and how the end of one is told."""

import asyncio
from pathlib import Path

import pytest

from ottla.broker.cluster_settings import cluster_settings
from ottla.broker.formatting import FormatRefused
from ottla.cli.node.cluster import ending, format_nodes

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
