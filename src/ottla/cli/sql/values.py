"""Values of Spark's rows as cells of a table and as JSON. Times are UTC, as in all output of the verbs. Pure."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from ottla.cli.common.escaping import escape_bytes

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
