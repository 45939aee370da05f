"""Results on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ottla.cli.sql.results import ROWS_MAX, Printer, cell, json_value
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
    monkeypatch.setattr("ottla.cli.sql.results.is_for_people", lambda as_json: True)
    printer = Printer()
    printer.table(COLUMNS, ROWS)
    assert capsys.readouterr().out == "name     n\na\\x1bb   1\nNULL    22\n\n"
    assert printer.rows_max == ROWS_MAX


def test_live_table_has_its_headings_once_and_grows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.cli.sql.results.is_for_people", lambda as_json: True)
    assert Printer().live(COLUMNS, iter([[("a", 1)], [("long name", 2), ("b", 3)]])) == 3
    assert capsys.readouterr().out == "name  n\na     1\nlong name  2\nb          3\n"


def test_live_lines_in_a_pipe_have_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    Printer().live(COLUMNS, iter([[("a", 1)], [("b", 2)]]))
    assert capsys.readouterr().out == "name\tn\na\t1\nb\t2\n"


class Row(tuple):  # type: ignore[type-arg]
    """As PySpark's Row: a tuple with names."""

    def asDict(self) -> dict[str, Any]:
        return {"a": self[0], "b": self[1]}


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two hours ahead of UTC."""
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    yield
    monkeypatch.undo()
    assert os.environ.get("TZ") != "Etc/GMT-2"
    time.tzset()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (1.5, "1.5"),
        (b"ab\xff", "ab\\xff"),
        (bytearray(b"x"), "x"),
        (Decimal("0E-2"), "0.00"),
        (date(2026, 1, 31), "2026-01-31"),
        ([1, None, "x"], "[1, NULL, x]"),
        ({"k": [True]}, "{k: [true]}"),
        (Row((1, None)), "{a: 1, b: NULL}"),
    ],
)
def test_cell_is_short_text(value: Any, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (float("nan"), "nan"),
        (b"ab", "YWI="),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 31), "2026-01-31"),
        (Row((b"a", [Row((1, 2))])), {"a": "YQ==", "b": [{"a": 1, "b": 2}]}),
        ({1: Decimal("2")}, {"1": "2"}),
    ],
)
def test_json_value_keeps_all_digits_and_bytes(value: Any, expected: Any) -> None:
    assert json_value(value) == expected


@pytest.mark.usefixtures("zone")
def test_times_are_utc_and_times_without_zone_stay() -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 5000)
    assert cell(moment, "timestamp") == "2026-01-31T10:00:00.005Z"
    assert json_value(moment.replace(microsecond=1), "timestamp") == "2026-01-31T10:00:00.000001Z"
    assert cell(moment, "timestamp_ntz") == "2026-01-31T12:00:00.005"
