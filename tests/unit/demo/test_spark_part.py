"""The demo on Spark, whole: kills on the way, every result once, a picture at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.demo.shop import Shop
from tools.demo.spark_part import _by_time


def test_parts_hold_every_event_once_in_order() -> None:
    shop = Shop.open(1, 200, 200)
    parts = list(_by_time(shop.events, parts=20))
    assert [event for _, part in parts for event in part] == shop.events
    assert [share for share, _ in parts] == [number / 20 for number in range(1, 21)]


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
