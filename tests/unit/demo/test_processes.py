"""The demo's processes are started, killed and stopped with everything that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tools.demo.processes import DemoFailed, Node, Process

from ottla import Admin

ROOT = Path(__file__).parents[3]


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


def marked(mark: str) -> list[int]:
    """The processes whose environment has `mark`, without those that are over."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in each.read_bytes():
                found.append(int(each.parent.name))
    return found


@pytest.mark.parametrize(
    ("command", "victim", "number"),
    [
        pytest.param("demo --broker-only", "demo", signal.SIGKILL, id="kill"),
        pytest.param("demo --broker-only", "demo", signal.SIGTERM, id="terminate", marks=pytest.mark.slow),
        pytest.param("demo --broker-only", "make", signal.SIGKILL, id="kill make", marks=pytest.mark.slow),
        pytest.param("demo --broker-only", "make", signal.SIGTERM, id="terminate make", marks=pytest.mark.slow),
        pytest.param("demo.cluster --quick", "demo", signal.SIGKILL, id="kill cluster", marks=pytest.mark.slow),
        pytest.param("demo.cluster --quick", "make", signal.SIGINT, id="interrupt make", marks=pytest.mark.slow),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_and_no_folder_outlives_a_demo_that_is_killed(
    tmp_path: Path, command: str, victim: str, number: signal.Signals
) -> None:
    mark, temporary = f"OTTLA_TEST_MARK={tmp_path}", tmp_path / "tmp"
    temporary.mkdir()
    line = [sys.executable, "-m", f"tools.{command.split()[0]}", *command.split()[1:]]
    if victim == "make":
        (tmp_path / "Makefile").write_text(f"demo:\n\t@{' '.join(line)}\n")
        line = ["make", "-f", str(tmp_path / "Makefile"), "demo"]
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "OTTLA_TEST_MARK": str(tmp_path),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("MAKELEVEL", None)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)
    try:
        assert process.stdout is not None
        awaited = "3. " if "cluster" in command else "2. "  # nodes are up
        assert any(each.startswith(awaited) for each in process.stdout)
        assert len(marked(mark)) > 2, "the demo, its guard and its nodes"
        process.send_signal(number)
        process.wait(HANG_S)
        await_true(lambda: not marked(mark) and not list(temporary.iterdir()), "everything to be gone")
    finally:
        process.kill()
        for pid in marked(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
