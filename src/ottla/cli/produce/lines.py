"""Parses lines into records: key, value and headers between separators, by Kafka's reader properties.

Lines are bytes and stay bytes: input that is not UTF-8 arrives unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from ottla.cli.common.settings import unknown_property
from ottla.cli.produce.input import BadInput, Lines
from ottla.cli.produce.records import Bytes, Columns, Headers
from ottla.client.producer.intake import PackedHeaders

KNOWN_HEADERS_MAX = 1_000

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


class _Malformed(Exception):
    """A line does not have the parts it should have."""


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

    @property
    def has_only_keys(self) -> bool:
        """Whether every line is a key and a value."""
        return self.parse_key and not self.parse_headers and self.null_marker is None


def build_format(properties: Mapping[str, str]) -> LineFormat:
    """The format that Kafka's reader properties describe. Unknown or conflicting properties are usage errors."""
    unknown = [name for name in properties if name not in PROPERTIES]
    if unknown:
        raise click.UsageError(f"the reader has no property {unknown[0]}: {unknown_property(unknown[0], PROPERTIES)}")

    def flag(name: str) -> bool:
        return properties.get(name, "").strip().lower() == "true"

    def text(name: str, default: str) -> bytes:
        value = os.fsencode(properties.get(name, default))
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
        null_marker=None if marker is None else os.fsencode(marker),
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
    """Makes a record of each line. `headers` are added to all records."""

    def __init__(self, line_format: LineFormat, headers: Headers = ()) -> None:
        self._format = line_format
        self._own_headers = PackedHeaders(headers)
        self.failure: BadInput | None = None
        self._known_headers: dict[bytes, Headers] = {}
        """What the first texts of headers mean: in most files few differ."""

    def read(self, lines: Lines) -> Columns:
        """The records of the lines before the first malformed one."""
        if self._format.is_plain:
            return self._columns(lines.lines, None, None)
        values: list[Bytes] = []
        keys: list[Bytes] = []
        headers: list[Headers] = []
        try:
            if self._format.has_only_keys:
                self._split_keys(lines.lines, keys, values)
            else:
                self._split(lines.lines, headers, keys, values)
        except _Malformed as problem:
            self.failure = BadInput(f"{lines.place(len(values))} {problem}")
        return self._columns(values, keys, headers if self._format.parse_headers else None)

    def _columns(self, values: list[bytes] | list[Bytes], keys: list[Bytes] | None, headers: list[Headers] | None) -> Columns:
        if headers is None and self._own_headers:
            return Columns(values, keys, [self._own_headers] * len(values))
        return Columns(values, keys, headers)

    def _split_keys(self, lines: Sequence[bytes], keys: list[Bytes], values: list[Bytes]) -> None:
        """The fast path of files with keys and nothing else."""
        separator = self._format.key_separator
        for line in lines:
            key, found, value = line.partition(separator)
            if not found:
                self._check_ignored(line, separator, "key.separator")
                keys.append(None)
                values.append(line)
            else:
                keys.append(key)
                values.append(value)

    def _split(self, lines: Sequence[bytes], all_headers: list[Headers], keys: list[Bytes], values: list[Bytes]) -> None:
        fmt, known, marker = self._format, self._known_headers, self._format.null_marker
        for line in lines:
            start = 0
            text: Bytes = None
            key: Bytes = None
            if fmt.parse_headers:
                end = line.find(fmt.headers_delimiter)
                if end >= 0:
                    text, start = line[:end], end + len(fmt.headers_delimiter)
                else:
                    self._check_ignored(line, fmt.headers_delimiter, "headers.delimiter")
            if fmt.parse_key:
                end = line.find(fmt.key_separator, start)
                if end >= 0:
                    key, start = line[start:end], end + len(fmt.key_separator)
                else:
                    self._check_ignored(line, fmt.key_separator, "key.separator")
            value: Bytes = line[start:]
            if marker is not None:
                key = None if key == marker else key
                value = None if value == marker else value
                text = None if text == marker else text
            all_headers.append(self._own_headers if text is None else known.get(text) or self._headers(text))
            keys.append(key)
            values.append(value)

    def _check_ignored(self, line: bytes, separator: bytes, name: str) -> None:
        if not self._format.ignore_error:
            raise _Malformed(
                f"has no {name} ({_shown(separator)}): {_shown(line)}. Set --reader-property {name}=…, or ignore.error=true to "
                "take such lines as values"
            )

    def _headers(self, text: bytes) -> Headers:
        headers = self._parse_headers(text) + self._own_headers
        if len(self._known_headers) < KNOWN_HEADERS_MAX:
            headers = self._known_headers[text] = PackedHeaders(headers)
        return headers

    def _parse_headers(self, text: bytes) -> Headers:
        fmt = self._format
        headers: list[tuple[str, Bytes]] = []
        for pair in text.split(fmt.headers_separator):
            name, separator, value = pair.partition(fmt.headers_key_separator)
            if not separator and not fmt.ignore_error:
                raise _Malformed(
                    f"has a header without headers.key.separator ({_shown(fmt.headers_key_separator)}): {_shown(pair)}"
                )
            if name == fmt.null_marker:
                raise _Malformed("has a header whose name is the null.marker: names cannot be null")
            is_null = not separator or value == fmt.null_marker
            headers.append((name.decode("utf-8", "surrogateescape"), None if is_null else value))
        return tuple(headers)


def _shown(text: bytes) -> str:
    shown = text[:60].decode("utf-8", "backslashreplace")
    return repr(shown + "…" if len(text) > 60 else shown)
