"""`Printer`: results on standard output as a table (on a terminal), as lines with tabs (in a pipe) or as JSON objects."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from ottla.cli.common.output import escape_bytes, is_for_people, print_json, print_table, say, warn
from ottla.spark.sql.screen import Shown

ROWS_MAX = 1000
"""Rows of a batch that a terminal shows without --max-rows."""
CELLS_MAX = 60
"""Width of a column of a live table: its lines come one by one, so it cannot be laid out whole."""


class Printer:
    """Prints what statements return."""

    def __init__(self, *, as_json: bool = False, rows_max: int | None = None) -> None:
        self._as_json = as_json
        self._is_table = is_for_people(as_json)
        self.rows_max = rows_max if rows_max is not None or not self._is_table else ROWS_MAX

    def table(self, columns: Sequence[Shown], rows: Iterable[Sequence[Any]]) -> None:
        """Print a complete result."""
        if self._as_json:
            self._print_objects(columns, rows)
        elif self._is_table:
            marks = {"list": "="} | dict.fromkeys(NUMBERS, "#")
            headings = [marks.get(each.kind, "") + each.name for each in columns]
            print_table(None, headings, [_cells(columns, row) for row in rows])
        else:
            say(*(each.name for each in columns))
            for row in rows:
                say(*_cells(columns, row))

    def live(self, columns: Sequence[Shown], batches: Iterator[Sequence[Sequence[Any]]]) -> int:
        """Print rows as they come, under headings that are printed once."""
        shown = 0
        lines = _LiveLines(columns, self._is_table)
        for rows in batches:
            if self._as_json:
                self._print_objects(columns, rows)
            else:
                for line in lines.of([_cells(columns, row) for row in rows]):
                    say(*line)
            sys.stdout.flush()  # the next batch may come much later
            shown += len(rows)
        return shown

    def note(self, text: str) -> None:
        """Print a sentence for people; programs get results only."""
        if sys.stderr.isatty():
            say(f"({text})", err=True)

    def warn(self, text: str) -> None:
        """Print a warning."""
        warn(text)

    def _print_objects(self, columns: Sequence[Shown], rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            print_json({each.name: json_value(value, each.kind) for each, value in zip(columns, row, strict=True)})


class _LiveLines:
    """Lines of a table that grows: a column becomes as wide as its widest cell so far."""

    def __init__(self, columns: Sequence[Shown], is_table: bool) -> None:
        self._columns = columns
        self._is_table = is_table
        self._widths = [len(each.name) for each in columns]
        self._has_headings = False

    def of(self, rows: list[list[str]]) -> Iterator[list[str]]:
        if not self._is_table:
            yield from ([] if self._has_headings else [[each.name for each in self._columns]])
            self._has_headings = True
            yield from rows
            return
        from ottla.cli.common.tables import shorten

        cut = [[shorten(text, CELLS_MAX) for text in row] for row in rows]
        for row in cut:
            self._widths = [max(width, len(text)) for width, text in zip(self._widths, row, strict=True)]
        if not self._has_headings:
            self._has_headings = True
            yield [self._line([each.name for each in self._columns])]
        for row in cut:
            yield [self._line(row)]

    def _line(self, row: list[str]) -> str:
        padded = [
            text.rjust(width) if each.kind in NUMBERS else text.ljust(width)
            for text, width, each in zip(row, self._widths, self._columns, strict=True)
        ]
        return "  ".join(padded).rstrip()


def _cells(columns: Sequence[Shown], row: Sequence[Any]) -> list[str]:
    return [cell(value, each.kind) for each, value in zip(columns, row, strict=True)]


NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})


def cell(value: Any, kind: str = "") -> str:
    """A value for a person: null as NULL, bytes as text, structures as JSON-like text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray):
        return escape_bytes(bytes(value))
    if isinstance(value, datetime):
        return _time(value, kind)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, list | tuple | Mapping):
        return _structure(value)
    return str(value)


def json_value(value: Any, kind: str = "") -> Any:
    """A value for a program: times as ISO 8601 text, decimals as text (nothing is rounded), bytes as base64."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        return _time(value, kind)
    if isinstance(value, date | timedelta | Decimal):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no NaN
    if hasattr(value, "asDict"):
        return {name: json_value(each) for name, each in value.asDict().items()}
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _time(value: datetime, kind: str) -> str:
    if kind == "timestamp_ntz":
        return value.isoformat(timespec="milliseconds")
    # PySpark gives timestamps without a zone, in the zone of this process.
    moment = value.astimezone(UTC).replace(tzinfo=None)
    digits = "milliseconds" if moment.microsecond % 1000 == 0 else "microseconds"
    return f"{moment.isoformat(timespec=digits)}Z"


def _structure(value: Any) -> str:
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {cell(each)}" for name, each in value.items()) + "}"
    return "[" + ", ".join(cell(each) for each in value) + "]"
