"""The end of a run."""

import json

import pytest

from ottla.cli.pipeline.run import print_summary
from ottla.spark.pipelines.progress import FlowProgress
from ottla.spark.pipelines.running import Totals


def totals() -> Totals:
    made = Totals(seconds=2.0)
    made.add(FlowProgress("copy", 0, 5, 1.0, 100, 7))
    made.add(FlowProgress("copy", 1, 5, 1.0, 100, 0))
    made.add(FlowProgress("view", 0, 1, 1.0, 100, None))
    return made


def test_lines_add_up_the_batches(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(totals(), False)
    assert capsys.readouterr().out == "copy\t10 rows\t2 batches\tlag 0\nview\t1 rows\t1 batches\tlag -\n"


def test_json_has_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(totals(), True)
    flows = [
        {"flow": "copy", "rows": 10, "batches": 2, "lag": 0, "checks": []},
        {"flow": "view", "rows": 1, "batches": 1, "lag": None, "checks": []},
    ]
    assert json.loads(capsys.readouterr().out) == {"flows": flows, "seconds": 2.0}


def test_run_without_records_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(Totals(seconds=1.25), False)
    assert capsys.readouterr().out == "No new records; looked for 1.2 s.\n"
