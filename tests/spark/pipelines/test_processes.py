"""`ottla pipeline run` in a process of its own: on a terminal, stopped by Ctrl-C; and the same folder under spark-pipelines."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.servers.ottla_cli import run_cli

from ottla.testing import Broker

OTTLA = [sys.executable, "-m", "ottla.cli.main"]
WAIT_S = 240


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as made:
        made.create_topic("orders", partitions=2)
        made.create_topic("large-orders")
        made.create_topic("orders-dead")
        yield made


@pytest.fixture
def folder(tmp_path: Path, broker: Broker) -> Path:
    assert run_cli("pipeline", "init", tmp_path / "shop", "-b", broker.bootstrap_servers).rc == 0
    return tmp_path / "shop"


def order(number: int) -> str:
    return json.dumps({"id": number, "customer": "ann", "amount": 100.0 + number})


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.mark.slow
def test_terminal_shows_a_live_line_and_ctrl_c_ends_in_good_order(folder: Path, broker: Broker) -> None:
    broker.produce("orders", order(1))
    master, terminal = pty.openpty()
    command = [*OTTLA, "pipeline", "run", str(folder), "--schedule", "continuous"]
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, cwd=folder.parent
    )
    os.close(terminal)
    try:
        wait_for(lambda: process.poll() is not None or len(broker.records("large-orders")) == 1)
        broker.produce("orders", order(2))
        wait_for(lambda: process.poll() is not None or len(broker.records("large-orders")) == 2)
        # To the whole group, as a terminal does: Spark's JVM gets it too.
        os.killpg(process.pid, signal.SIGINT)
        screen = _read_all(master)
        assert process.wait(WAIT_S) == 0, screen
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        os.close(master)
    assert re.search(r"keep_large_orders: \S+ rows/s, batch 0 in \S+ s, lag 0", screen)
    assert "SIGINT: stopping after the batches that are under way" in screen
    assert "Done in" in screen
    assert re.search(r"Spark's UI is at http://127.0.0.1:\d+", screen)
    assert "\tat " not in screen
    assert len(broker.records("large-orders")) == 2


def _read_all(master: int) -> str:
    found = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux: the other end is closed
            return found.decode()
        if not part:
            return found.decode()
        found += part


@pytest.mark.slow
def test_sigterm_ends_a_run_that_waits_for_brokers(tmp_path: Path) -> None:
    assert run_cli("pipeline", "init", tmp_path / "shop", "-b", "127.0.0.1:1").rc == 0
    command = [*OTTLA, "pipeline", "run", str(tmp_path / "shop"), "--wait", "forever", "--metrics-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "127.0.0.1:1" in line and "Metrics" not in line)
            process.terminate()
            assert process.wait(WAIT_S) == 143, said
        finally:
            process.kill()


@pytest.mark.slow
def test_spark_pipelines_runs_the_same_folder(folder: Path, broker: Broker) -> None:
    (folder / "storage").mkdir()
    broker.produce("orders", order(1))
    broker.produce("orders", json.dumps({"id": 2, "customer": "bob", "amount": 1.0}))
    # SPARK_TESTING: a free port instead of 15002 for the Connect server of this process.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = ["spark-pipelines", "--remote", "local[2]", "run"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [json.loads(each.value or b"")["id"] for each in broker.records("large-orders")] == [1]


@pytest.mark.slow
@pytest.mark.parametrize(("answers", "exit_code", "results"), [(["\n"], 1, 1), (["large\n"], 0, 1), (["reset\n", "y\n"], 0, 2)])
def test_checkpoint_that_no_flow_has_is_asked_about_on_a_terminal(
    folder: Path, broker: Broker, answers: list[str], exit_code: int, results: int
) -> None:
    broker.produce("orders", order(1))
    assert run_cli("pipeline", "run", folder).rc == 0
    flows = folder / "transformations" / "large_orders.py"
    flows.write_text(flows.read_text().replace("def keep_large_orders", "def large"))
    master, terminal = pty.openpty()
    command = [*OTTLA, "pipeline", "run", str(folder)]
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
    os.close(terminal)
    screen = ""
    try:
        for question, answer in zip(("Which flow is it now?", "Delete"), answers, strict=False):
            while question not in screen:
                screen += os.read(master, 65536).decode()
            os.write(master, answer.encode())
        screen += _read_all(master)
        assert process.wait(WAIT_S) == exit_code, screen
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        os.close(master)
    assert "There is a checkpoint of keep_large_orders, which has read up to orders-0: " in screen
    assert len(broker.records("large-orders")) == results
    assert (folder / "storage" / "ottla" / "checkpoints" / "keep_large_orders").exists() == (exit_code == 1)
