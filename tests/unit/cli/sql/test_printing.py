"""Results on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import json

import pytest

from ottla.cli.sql.printing import ROWS_MAX, Printer
from ottla.spark.sql.screen import Shown

COLUMNS = [Shown("name"), Shown("n", "long")]
ROWS = [("a\x1bb", 1), (None, 22)]


def test_pipe_gets_lines_with_tabs_and_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer()
    printer.table(COLUMNS, ROWS)
    printer.note("not for programs")
    assert capsys.readouterr() == ("name\tn\na\\x1bb\t1\nNULL\t22\n", "")
    assert printer.rows_max is None


def test_json_is_an_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(as_json=True, rows_max=5)
    printer.table(COLUMNS, ROWS)
    assert printer.live(COLUMNS, iter([ROWS[:1]])) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"name": "a\x1bb", "n": 1}, {"name": None, "n": 22}, {"name": "a\x1bb", "n": 1}]
    assert printer.rows_max == 5


def test_terminal_gets_a_table_with_numbers_to_the_right(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.cli.sql.printing.is_for_people", lambda as_json: True)
    printer = Printer()
    printer.table(COLUMNS, ROWS)
    assert capsys.readouterr().out == "name     n\na\\x1bb   1\nNULL    22\n\n"
    assert printer.rows_max == ROWS_MAX


def test_live_table_has_its_headings_once_and_grows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.cli.sql.printing.is_for_people", lambda as_json: True)
    assert Printer().live(COLUMNS, iter([[("a", 1)], [("long name", 2), ("b", 3)]])) == 3
    assert capsys.readouterr().out == "name  n\na     1\nlong name  2\nb          3\n"


def test_live_lines_in_a_pipe_have_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    Printer().live(COLUMNS, iter([[("a", 1)], [("b", 2)]]))
    assert capsys.readouterr().out == "name\tn\na\t1\nb\t2\n"
