"""The demo without Spark runs, and fails if records are missing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.demo import broker_part as demo_module
from tools.demo.__main__ import why_no_spark

from ottla.errors import OttlaError


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


def test_demo_says_that_java_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise OttlaError("Spark needs Java 17 or newer")

    monkeypatch.setattr("ottla.spark.java.find_java", no_java)
    assert why_no_spark([]) == "Spark needs Java 17 or newer"


@pytest.mark.slow
def test_demo_fails_when_records_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(demo_module.Demo):
        def produce(self) -> None:
            self.call(["produce", "orders"], stdin="one of a few\n" * demo_module.SHOWN)

    with pytest.raises(demo_module.DemoFailed, match="the node acknowledged 100,000 records and has 4"):
        Forgetful(tmp_path / "data").run()
