"""The demo's processes are started, killed and stopped with everything that they have started."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla import Admin
from ottla.cli.demo.processes import DemoFailed, Node, Process


def test_a_node_comes_back_at_the_same_address_with_its_topics(tmp_path: Path) -> None:
    node = Node(tmp_path / "data", tmp_path / "node.log")
    try:
        node.start_and_wait()
        with Admin(node.address) as admin:
            admin.create_topics({"orders": 1}).raise_first()
        node.kill()
        node.start_and_wait()
        with Admin(node.address) as admin:
            assert "orders" in admin.list_topics()
        node.check()
    finally:
        node.stop()


def test_a_command_that_has_ended_is_told_with_its_last_lines(tmp_path: Path) -> None:
    process = Process(["topics", "no-such-verb"], tmp_path / "log")
    process.start()
    assert process._process is not None
    process._process.wait()
    with pytest.raises(DemoFailed, match=r"`ottla topics no-such-verb` ended with 2\. Its last lines: .*no-such-verb"):
        process.check()
    process.stop()
