"""The progress bar: its text, and where it is not shown."""

import pytest
from ottla.cli.perf.progress import REDRAW_S, ProgressBar, bar_line


@pytest.mark.parametrize(("done", "share"), [(0, "0%"), (500, "50%"), (1000, "100%"), (1500, "100%")])
def test_bar_has_percent_and_rates(done: int, share: str) -> None:
    line = bar_line(done, 1000, 1024 * 1024, 2.0)
    assert f"{share}  {done:,} of 1,000  {done / 2:,.0f} records/s  0.5 MB/s" in line


def test_bar_is_not_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(10, True, 0.0)
    bar.show(5, 100, REDRAW_S * 2)
    bar.clear()
    assert capsys.readouterr().err == ""


def test_bar_is_redrawn_now_and_then_and_removed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = ProgressBar(10, True, 0.0)
    for now_s in (REDRAW_S, REDRAW_S * 1.5, REDRAW_S * 2):
        bar.show(5, 100, now_s)
    bar.clear()
    assert capsys.readouterr().err.count("5 of 10") == 2
