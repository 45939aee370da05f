"""Reads records as JSON objects, one a line, in the shape that `ottla consume --json` writes.

`value`, `key` and the values of `headers` are text, null, or base64 under another name (`value_base64`). A number, a boolean, a
list or an object becomes its JSON text. `partition`, `timestamp` and `topic` may be left out.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from ottla.cli.common.spelling import did_you_mean
from ottla.cli.produce.input import BadInput, Lines
from ottla.cli.produce.records import Bytes, Headers, Row

FIELDS = (
    *("topic", "partition", "offset", "timestamp", "timestampType", "leaderEpoch"),
    *("headers", "key", "key_base64", "value", "value_base64"),
)
_KNOWN = frozenset(FIELDS)
_TIMESTAMP_MAX = 2**63 - 1
_PARTITION_MAX = 2**31 - 1


class _Malformed(Exception):
    """The JSON is no record."""


class JsonReader:
    """Makes a record of each line of JSON. `headers` are added to all; `keeps_partitions`: they go where they say."""

    def __init__(self, headers: Headers = (), keeps_partitions: bool = True) -> None:
        self._own_headers = headers
        self._keeps_partitions = keeps_partitions
        self.failure: BadInput | None = None

    def read(self, lines: Lines) -> list[Row]:
        """The records of the lines before the first malformed one. Empty lines are skipped."""
        rows: list[Row] = []
        for index, line in enumerate(lines.lines):
            if not line.strip():
                continue
            try:
                rows.append(self._row(line, index))
            except _Malformed as problem:
                self.failure = BadInput(f"{lines.place(index)} {problem}")
                break
        return rows

    def _row(self, line: bytes, index: int) -> Row:
        try:
            found = json.loads(line)
        except UnicodeDecodeError:
            raise _Malformed("is not JSON, because it is not UTF-8: give bytes as value_base64") from None
        except (ValueError, RecursionError) as problem:
            raise _Malformed(f"is not JSON: {problem}. Without --json each line is the value of a record") from None
        if not isinstance(found, dict):
            raise _Malformed('is no JSON object: a record is one, such as {"key": "k", "value": "v"}')
        unknown = next((name for name in found if name not in _KNOWN), None)
        if unknown is not None:
            hint = did_you_mean(unknown, FIELDS) or f"a record has {', '.join(FIELDS)}"
            raise _Malformed(f"has a field {unknown!r} that records do not have: {hint}")
        if "value" not in found and "value_base64" not in found:
            raise _Malformed('has no value: give "value", "value_base64", or "value": null')
        topic = found.get("topic")
        if topic is not None and not isinstance(topic, str):
            raise _Malformed("has a topic that is not text")
        return Row(
            _member(found, "value"),
            _member(found, "key"),
            _headers(found.get("headers")) + self._own_headers,
            _number(found, "timestamp", _TIMESTAMP_MAX),
            _number(found, "partition", _PARTITION_MAX) if self._keeps_partitions else None,
            topic,
            index,
        )


def _member(found: dict[str, Any], name: str) -> Bytes:
    """The bytes of a key or value."""
    encoded = found.get(f"{name}_base64")
    if encoded is not None:
        if found.get(name) is not None:
            raise _Malformed(f"has both {name} and {name}_base64: give one of them")
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise _Malformed(f"has a {name}_base64 that is not base64") from None
    value = found.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _Malformed(f"has half of a surrogate pair in its {name}: give it as {name}_base64") from None


def _headers(found: Any) -> Headers:
    if not found:
        return ()
    if not isinstance(found, list):
        raise _Malformed('has headers that are not a list such as [{"name": "h", "value": "v"}]')
    headers: list[tuple[str, Bytes]] = []
    for each in found:
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str) or not each.keys() <= {"name", "value", "value_base64"}:
            raise _Malformed('has a header that is not of the form {"name": "h", "value": "v"}')
        try:
            name.encode("utf-8", "surrogateescape")  # which is how consumers decode names that are not UTF-8
        except UnicodeEncodeError:
            raise _Malformed("has half of a surrogate pair in the name of a header") from None
        headers.append((name, _member(each, "value")))
    return tuple(headers)


def _number(found: dict[str, Any], name: str, largest: int) -> int | None:
    """A whole number; None if there is none. A consumer gets -1 for the timestamp of a record that has none."""
    value = found.get(name)
    if value is None or (value == -1 and name == "timestamp"):
        return None
    if type(value) is not int or not 0 <= value <= largest:
        raise _Malformed(f"has a {name} that is not a whole number of at least 0: {value!r}")
    return value
