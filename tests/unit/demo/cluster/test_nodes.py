"""The files of the three nodes, and a directory that cannot be formatted."""

from pathlib import Path

import pytest
from tools.demo.cluster.nodes import Nodes
from tools.demo.processes import DemoFailed

from ottla.cli.common.settings import read_properties
from ottla.config.broker import BrokerConfig


def test_files_are_those_of_one_cluster(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    configs = [BrokerConfig.from_settings(read_properties(str(tmp_path / f"server-{node}.properties"))) for node in (1, 2, 3)]
    assert [each.node_id for each in configs] == [1, 2, 3]
    assert len(nodes.bootstrap_servers.split(",")) == 3
    assert (
        len({line for file in tmp_path.glob("*.properties") for line in file.read_text().splitlines() if "voters" in line}) == 1
    )


def test_directory_that_cannot_be_formatted(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    (tmp_path / "data-2").write_text("a file")
    with pytest.raises(DemoFailed, match="could not be formatted"):
        nodes.format("5L6g3nShT-eMCtK--X86sw")
