"""The check of the machine at a node's start: its log lines, its metric, its setting."""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import HANG_S, free_ports

from ottla.broker.checks.at_start import AtStart
from ottla.broker.checks.findings import Finding, Level

FINDINGS = [
    Finding("open-files", Level.ERROR, "few files", "more", "they run out", "ulimit"),
    Finding("free-space", Level.FINE, "/a is empty"),
    Finding("free-space", Level.WARN, "/b is full", "space"),
    Finding("free-space", Level.FINE, "/c is empty"),
    Finding("keep-alive", Level.NOTE, "a note"),
    Finding("numa", Level.UNKNOWN, "no such file"),
]


def test_a_line_for_each_thing_that_will_fail_or_hurt(caplog: pytest.LogCaptureFixture) -> None:
    checked = AtStart()
    with caplog.at_level(logging.DEBUG, "ottla.check"):
        checked.report(FINDINGS)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("ERROR", "open-files: few files, more advised: they run out. Now: ulimit"),
        ("WARNING", "free-space: /b is full, space advised"),
    ]
    assert checked.failed == {"open-files": True, "free-space": True, "keep-alive": False, "numa": False}


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_node_with_few_files_says_so(tmp_path: Path, is_enabled: bool) -> None:
    """A real node in a process of its own, whose limit the test lowers."""
    (port,) = free_ports(1)
    flags = ["--port", "0", "--data", tmp_path / "data", "--json", "--metrics-port", port]
    if not is_enabled:
        flags += ["--set", "ottla.check.enable=false"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", "up", *map(str, flags)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512)), env=os.environ,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())
        until_s = time.monotonic() + (HANG_S if is_enabled else 1.5)  # without it there is nothing to wait for
        while 'check="open-files"' not in (page := metrics(port)) and time.monotonic() < until_s:
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=HANG_S)[1]
    assert ('ottla_check_failed{check="open-files"} 1' in page) == is_enabled
    assert ("ottla_check_failed{" in page) == is_enabled
    assert ("open-files: the process may open 512 files" in said) == is_enabled, said


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=HANG_S) as answer:
        return str(answer.read().decode())
