"""The live line of a query."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from ottla.spark.progress.listener import ProgressLine
from ottla.spark.progress.measures import Measures

ONE = Measures("id-1", "run-1", "orders", 4, 100, 4210.4, 412, ())


def test_a_terminal_shows_the_newest_line() -> None:
    written = StringIO()
    line = ProgressLine(Console(file=written, force_terminal=True, width=100))
    line.show(ONE, 48210)
    line.close()
    assert "orders · batch 4 · 48,210 rows · 4,210 rows/s · 0.41 s" in written.getvalue()


def test_a_pipe_shows_nothing() -> None:
    written = StringIO()
    line = ProgressLine(Console(file=written, force_terminal=False))
    line.show(ONE, 1)
    line.close()
    assert written.getvalue() == ""
