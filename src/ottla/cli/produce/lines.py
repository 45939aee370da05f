"""Parses lines into records: key, value and headers between separators, by Kafka's reader properties.

Lines are bytes and stay bytes: input that is not UTF-8 arrives unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from ottla.errors import OttlaError
from ottla.records.kernels import Headers, Row

PROPERTIES = (
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
    "ignore.error",
)


class BadLine(OttlaError):
    """A line that does not have the parts it should have."""


@dataclass(frozen=True, slots=True)
class LineFormat:
    """The parts of a line: [headers, delimiter,] [key, separator,] value."""

    parse_key: bool = False
    key_separator: bytes = b"\t"
    parse_headers: bool = False
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None
    ignore_error: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether every line is a value and nothing else."""
        return not self.parse_key and not self.parse_headers and self.null_marker is None


def build_format(properties: Mapping[str, str]) -> LineFormat:
    """The format that Kafka's reader properties describe. Unknown or conflicting properties are usage errors."""
    unknown = [name for name in properties if name not in PROPERTIES]
    if unknown:
        raise click.UsageError(f"the reader has no property {unknown[0]}: choose from {', '.join(PROPERTIES)}")

    def flag(name: str) -> bool:
        return properties.get(name, "").strip().lower() == "true"

    def text(name: str, default: str) -> bytes:
        value = properties.get(name, default).encode()
        if not value:
            raise click.UsageError(f"{name} must not be empty")
        return value

    marker = properties.get("null.marker")
    made = LineFormat(
        parse_key=flag("parse.key"),
        key_separator=text("key.separator", "\t"),
        parse_headers=flag("parse.headers"),
        headers_delimiter=text("headers.delimiter", "\t"),
        headers_separator=text("headers.separator", ","),
        headers_key_separator=text("headers.key.separator", ":"),
        null_marker=None if marker is None else marker.encode(),
        ignore_error=flag("ignore.error"),
    )
    _check_different(made)
    return made


def _check_different(made: LineFormat) -> None:
    pairs = (
        ("headers.delimiter", made.headers_delimiter, "headers.separator", made.headers_separator),
        ("headers.delimiter", made.headers_delimiter, "headers.key.separator", made.headers_key_separator),
        ("headers.separator", made.headers_separator, "headers.key.separator", made.headers_key_separator),
        ("null.marker", made.null_marker, "key.separator", made.key_separator),
        ("null.marker", made.null_marker, "headers.separator", made.headers_separator),
        ("null.marker", made.null_marker, "headers.delimiter", made.headers_delimiter),
        ("null.marker", made.null_marker, "headers.key.separator", made.headers_key_separator),
    )
    for first, one, second, other in pairs:
        if one == other:
            raise click.UsageError(f"{first} and {second} must not be the same")


class LineReader:
    """Turns lines into rows. At a malformed line it returns the rows before it and sets `failure`."""

    def __init__(self, line_format: LineFormat) -> None:
        self._format = line_format
        self._line_number = 0
        self.failure: BadLine | None = None

    def rows(self, lines: Sequence[bytes], timestamp_ms: int) -> list[Row]:
        if self._format.is_plain:
            return [(timestamp_ms, None, line, ()) for line in lines]
        rows: list[Row] = []
        try:
            for line in lines:
                self._line_number += 1
                rows.append(self._row(line, timestamp_ms))
        except BadLine as failure:
            self.failure = failure
        return rows

    def _row(self, line: bytes, timestamp_ms: int) -> Row:
        fmt = self._format
        start = 0
        headers: bytes | None = None
        key: bytes | None = None
        if fmt.parse_headers:
            headers, start = self._part(line, start, fmt.headers_delimiter, "headers.delimiter")
        if fmt.parse_key:
            key, start = self._part(line, start, fmt.key_separator, "key.separator")
        value: bytes | None = line[start:]
        marker = fmt.null_marker
        if marker is not None:
            key = None if key == marker else key
            value = None if value == marker else value
            headers = None if headers == marker else headers
        return timestamp_ms, key, value, () if headers is None else self._headers(headers)

    def _part(self, line: bytes, start: int, separator: bytes, name: str) -> tuple[bytes | None, int]:
        end = line.find(separator, start)
        if end >= 0:
            return line[start:end], end + len(separator)
        if self._format.ignore_error:
            return None, start
        raise BadLine(
            f"line {self._line_number} has no {name} ({_shown(separator)}): {_shown(line)}. Set --reader-property {name}=…, or "
            "ignore.error=true to take such lines as values"
        )

    def _headers(self, text: bytes) -> Headers:
        fmt = self._format
        headers: list[tuple[str, bytes | None]] = []
        for pair in text.split(fmt.headers_separator):
            name, separator, value = pair.partition(fmt.headers_key_separator)
            if not separator and not fmt.ignore_error:
                raise BadLine(
                    f"line {self._line_number} has a header without headers.key.separator "
                    f"({_shown(fmt.headers_key_separator)}): {_shown(pair)}"
                )
            if name == fmt.null_marker:
                raise BadLine(f"line {self._line_number} has a header whose name is the null.marker: names cannot be null")
            is_null = not separator or value == fmt.null_marker
            headers.append((name.decode("utf-8", "replace"), None if is_null else value))
        return tuple(headers)


def _shown(text: bytes) -> str:
    shown = text[:60].decode("utf-8", "backslashreplace")
    return repr(shown + "…" if len(text) > 60 else shown)
