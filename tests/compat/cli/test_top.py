"""`ottla top`: one look as JSON and as tables, and the live view on a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cli import run_cli

from ottla import Consumer, Producer
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker with a busy topic, a quiet one, and a group that is behind."""
    with Broker() as broker:
        broker.create_topic("busy", partitions=3)
        broker.create_topic("quiet")
        is_over = threading.Event()

        def produce() -> None:
            with Producer(broker.bootstrap_servers) as producer:
                while not is_over.wait(0.01):
                    producer.send("busy", b"x" * 100)

        thread = threading.Thread(target=produce)
        thread.start()
        settings = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        with Consumer(broker.bootstrap_servers, **settings) as consumer:
            consumer.subscribe("busy")
            assert consumer.poll(60, max_records=1)
            consumer.commit()
            yield broker
        is_over.set()
        thread.join()


def test_once_as_json(broker: Broker) -> None:
    found = json.loads(run_cli("top", "-b", broker.bootstrap_servers, "--once", "--interval", "1", "--json").out)
    assert found["health"] == "healthy"
    ((node),) = found["nodes"]
    assert node["state"] == "controller"
    assert node["leaders"] == node["replicas"] >= 4
    assert 0 < node["freePercent"] <= 100
    assert [each["topic"] for each in found["topics"]] == ["busy", "quiet"]
    assert found["topics"][0]["rate"] > 0 == found["topics"][1]["rate"]
    assert found["topics"][0]["bytes"] > 0
    ((group),) = found["groups"]
    assert (group["group"], group["state"]) == ("billing", "Stable")
    assert group["lag"] > 0 < group["lagSeconds"]
    assert group["rateIn"] > 0 == group["rateOut"]


def test_once_as_tables(broker: Broker) -> None:
    said = run_cli("top", "-b", broker.bootstrap_servers, "--once", "--interval", "0.2", "--rows", "1", columns=140)
    assert said.rc == 0, said.err
    assert "1 nodes: healthy" in said.out
    assert "busy" in said.out
    assert "quiet" not in said.out, "one row"
    assert "billing" in said.out


def test_live_on_a_terminal_until_it_is_interrupted(broker: Broker) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ottla", "top", "-b", broker.bootstrap_servers, "--interval", "0.2"]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"},
    )
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + HANG_S
    try:
        while shown.count(b"billing") < 3:
            assert time.monotonic() < deadline, shown[-2000:]
            shown += os.read(ours, 65536)
        threading.Thread(target=_drain, args=(ours,), daemon=True).start()
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"Records/s" in shown


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # the other side is closed
