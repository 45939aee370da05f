"""Cells and JSON values."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ottla.cli.sql.printing import cell, json_value


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
