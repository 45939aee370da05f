"""The live line of a run."""

import contextlib
import io
import json
from unittest import mock

import pytest

from ottla.cli.pipeline import run
from ottla.cli.pipeline.run import line_of, make_reporter
from ottla.spark.pipelines.progress import FlowProgress

ONE = FlowProgress("copy", 3, 500, 2000.0, 250, 1200)
TWO = FlowProgress("view\x1b[2J", 0, 1, 4.0, 250, None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_line_has_rate_time_and_lag_of_each_flow() -> None:
    assert line_of([ONE, TWO]) == (
        "copy: 2,000 rows/s, batch 3 in 0.2 s, lag 1,200  │  view\\x1b[2J: 4 rows/s, batch 0 in 0.2 s"
    )


def test_terminal_is_redrawn_in_place() -> None:
    screen = Terminal()
    with mock.patch.dict("os.environ", {"COLUMNS": "30"}), contextlib.redirect_stderr(screen), make_reporter(False) as report:
        report(ONE)
        report(ONE)
    assert screen.getvalue() == "\r\x1b[Kcopy: 2,000 rows/s, batch 3 …" * 2 + "\n"


def test_json_has_a_line_for_each_batch(capsys: pytest.CaptureFixture[str]) -> None:
    with make_reporter(True) as report:
        report(ONE)
    expected = {"flow": "copy", "batch": 3, "rows": 500, "rows_per_s": 2000.0, "batch_ms": 250, "lag": 1200}
    assert json.loads(capsys.readouterr().out) == expected


def test_pipe_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with make_reporter(False) as report:
        report(ONE)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(run, "LOG_INTERVAL_S", 0.0)
        report(ONE)
    assert capsys.readouterr().err == "copy: 2,000 rows/s, batch 3 in 0.2 s, lag 1,200\n"
