"""The demos run to their end, say what is lost, and leave no process and no folder behind, however they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tools.demo import broker_part as demo_module
from tools.demo.cluster import story as story_module
from tools.demo.cluster.load import Load
from tools.demo.processes import DemoFailed
from tools.demo.report import Found, differences
from tools.demo.shop import CLOSING, Shop


def test_demo_says_why_it_runs_without_spark_and_runs_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo", "--broker-only"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={"TMPDIR": str(tmp_path), "PATH": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Without Spark: --broker-only was given. So here is the broker's part.")
    assert len(re.findall(r"up at 127\.0\.0\.1:\d+ after \d+ ms", done.stdout)) == 2
    assert "100,000 of 100,000" in done.stdout
    assert re.search(r"Partition:\d\s+Offset:\d+\s+customer-\d+\s+order \d+", done.stdout)
    assert "payload: order" in done.stdout
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.slow
def test_demo_fails_when_records_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(demo_module.Demo):
        def produce(self) -> None:
            self.call(["produce", "orders"], stdin="one of a few\n" * demo_module.SHOWN)

    with pytest.raises(demo_module.DemoFailed, match="the node acknowledged 100,000 records and has 4"):
        Forgetful(tmp_path / "data").run()


@pytest.mark.slow
def test_demo_runs_to_its_end_on_spark(tmp_path: Path) -> None:
    command, environment = [sys.executable, "-m", "tools.demo"], {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=tmp_path, env=environment)
    # On a busy machine clients say what they wait for while the node is down.
    said = [line for line in done.stderr.splitlines() if not re.search(r"Trying again until it works$|Waiting for \d+ s", line)]
    assert (done.returncode, said) == (0, []), done.stdout
    assert "each exactly once, through two kills; no transaction is open" in done.stdout
    assert "$ kill -9 the pipeline" in done.stdout
    assert "$ kill -9 the node" in done.stdout
    assert (tmp_path / "ottla-demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.timeout(600)  # three nodes start, one of them twice: half a minute, more on a busy machine
def test_demo_kills_a_leader_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo.cluster", "--quick"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={"TMPDIR": str(tmp_path), "PATH": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout, "plain text in a pipe"
    killed = re.search(r"kill -9 \(node (\d)\)", done.stdout)
    assert killed is not None
    before, after_kill, after = re.split(r"kill -9|The node comes back", done.stdout)
    assert before.count("★ leads") == after_kill.count("★ leads") == after.count("★ leads") == 3
    assert re.search(rf"node {killed[1]}    ✗ out       ✗ out       ✗ out       down", after_kill)
    assert "✗" not in before + after
    sent = re.search(r"sent ([\d,]+), acknowledged ([\d,]+), failed 0, read ([\d,]+)", after)
    assert sent is not None
    assert sent[1] == sent[2] == sent[3]
    assert "nothing lost, nothing doubled, all in order" in after
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_lost_record_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Load):
        def __init__(self) -> None:
            self.sent = self.acknowledged = 3
            self.failures, self.longest_wait_s = [], 0.5

        def stop(self) -> None:
            """Nothing was sent."""

    monkeypatch.setattr(story_module, "read_all", lambda *where: [[0], [1, 1], []])
    told = story_module.Story(tmp_path, 1)
    told._load = Stopped()
    with pytest.raises(DemoFailed, match="1 records are lost, 1 doubled"):
        told.count()


def complete(shop: Shop) -> Found:
    found = Found()
    for order_id, cents in shop.paid.items():
        found.add_paid({"order_id": order_id, "cents": cents})
    for window, cents in shop.revenue.items():
        found.add_revenue({"window": window, "cents": cents})
    found.add_paid({"order_id": CLOSING, "cents": 0})
    found.add_revenue({"window": "15:00", "cents": 0})
    return found


def test_a_lost_a_doubled_and_a_wrong_result_are_told() -> None:
    shop = Shop.open(1, 50, 10)
    found = complete(shop)
    first, *_, last = sorted(found.paid)
    found.paid[first] += 1
    del found.paid[last]
    window = min(found.revenue)
    del found.revenue[window]
    said = differences(shop, found)
    assert said[0].startswith(f"1 paid orders are missing, for example {last[0]} with ")
    assert said[1].startswith(f"1 paid orders are there that should not be, or twice, for example {first[0]} with ")
    assert said[2].startswith(f"1 windows of revenue are missing, for example {window[0]} with ")


ROOT = Path(__file__).parents[3]


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
