"""A pipeline that runs through an outage of its broker, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cli import run_cli

from ottla.testing import Broker

pytestmark = pytest.mark.slow
PATIENCE = """\
    fetchOffset.numRetries: 1
    kafka.default.api.timeout.ms: 5000
    kafka.request.timeout.ms: 2000
"""


def wait_for(is_true: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not is_true():
        assert time.monotonic() < deadline_s, f"{what} did not happen within {HANG_S} s"
        time.sleep(0.1)


def test_flow_that_broke_in_an_outage_goes_on_after_it(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic("large-orders")
        broker.create_topic("orders-dead")
        folder = tmp_path / "shop"
        assert run_cli("pipeline", "init", folder, "-b", broker.bootstrap_servers).rc == 0
        connections = (folder / "ottla.yml").read_text()
        starts = "    startingOffsets: earliest\n"
        assert starts in connections
        (folder / "ottla.yml").write_text(connections.replace(starts, starts + PATIENCE))
        errors = tmp_path / "errors.txt"
        with open(errors, "wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(folder), "--schedule", "continuous"],
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
            )
        try:
            _through_an_outage(broker, process, errors)
            os.killpg(process.pid, signal.SIGINT)
            out = process.communicate(timeout=HANG_S)[0].decode()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        assert process.returncode == 0, errors.read_text()
        assert out == "keep_large_orders\t2 rows\t2 batches\tlag 0\n"
        assert [json.loads(each.value or b"")["id"] for each in broker.records("large-orders")] == [1, 2]


def _through_an_outage(broker: Broker, process: subprocess.Popen[bytes], errors: Path) -> None:
    def has_written(count: int) -> Callable[[], bool]:
        return lambda: process.poll() is not None or len(broker.records("large-orders")) >= count

    def says(pattern: str) -> Callable[[], bool]:
        return lambda: process.poll() is not None or re.search(pattern, errors.read_text()) is not None

    broker.produce("orders", json.dumps({"id": 1, "customer": "ann", "amount": 100.0}))
    wait_for(has_written(1), "the first record")
    broker.kill()
    wait_for(says("lost the brokers at .*nothing listens"), "the message about the outage")
    wait_for(says("the flow keep_large_orders broke.*; it goes on when the brokers are back"), "the end of the flow")
    wait_for(says("waiting for a broker at"), "the message about the wait")
    broker.start()
    broker.produce("orders", json.dumps({"id": 2, "customer": "ann", "amount": 200.0}))
    wait_for(has_written(2), "the record after the outage")
