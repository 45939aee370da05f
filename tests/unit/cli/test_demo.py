"""The demo does what it says, and notices if it does not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli import demo as demo_module


def test_the_whole_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ottla.cli.demo"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={"TMPDIR": str(tmp_path), "PATH": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(r"up at 127\.0\.0\.1:\d+ after \d+ ms", done.stdout)) == 2
    assert "100,000 of 100,000" in done.stdout
    assert re.search(r"Partition:\d\s+Offset:\d+\s+customer-\d+\s+order \d+", done.stdout)
    assert "payload: order" in done.stdout
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_records_that_are_missing_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(demo_module.Demo):
        def produce(self) -> None:
            self.call(["produce", "orders"], stdin="one of a few\n" * demo_module.SHOWN)

    with pytest.raises(demo_module.DemoFailed, match="100,000 records were acknowledged, and 4 are there"):
        Forgetful(tmp_path / "data").run()
