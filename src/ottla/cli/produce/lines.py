"""Parses lines into records: key, value and headers between separators, by Kafka's reader properties.

Lines are bytes and stay bytes: input that is not UTF-8 arrives unchanged. Files and standard input are cut at a delimiter;
only that is taken away, so a carriage return before a line feed belongs to its line. No thread blocks on the input, so that
the command can end at any time. Records as JSON objects, one a line, have the shape that `ottla consume --json` writes:
`value`, `key` and the values of `headers` are text, null, or base64 under another name (`value_base64`); `partition`,
`timestamp` and `topic` may be left out.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import re
import select
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import click

from ottla.cli.common.settings import unknown_property
from ottla.cli.common.spelling import did_you_mean
from ottla.cli.produce.options import RECORD_BYTES_MAX
from ottla.client.producer.intake import PackedHeaders
from ottla.errors import OttlaError
from ottla.errors.texts import sized

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


PIECE_BYTES = 256 * 1024
STANDARD_INPUT = "-"
SHOWN_INPUT = "standard input"


class BadInput(OttlaError):
    """A part of the input from which no record can be made. Its text names the place."""


class Lines(NamedTuple):
    """Consecutive parts of one input, without their delimiters."""

    lines: list[bytes]
    name: str
    first_number: int
    """The number of the first of them in its file, from 1 on; 0: the file is one part."""
    word: str = "line"

    def place(self, index: int) -> str:
        """Where one of them is: `orders.txt, line 7`."""
        if self.first_number == 0:
            return self.name
        return f"{self.name}, {self.word} {self.first_number + index:,}"


class Input:
    """The lines of files, one after the other. `STANDARD_INPUT` stands for the file descriptor `fd`."""

    def __init__(
        self, names: Sequence[str], fd: int | None, delimiter: bytes | None = b"\n", record_bytes_max: int = RECORD_BYTES_MAX
    ) -> None:
        self._names = list(names)
        self._fd = fd
        self._delimiter = delimiter
        """What ends a line; None: a file is one part."""
        self._record_bytes_max = record_bytes_max
        self._tail: list[bytes] = []
        """The beginning of a line whose end was not read yet, in pieces: joined once, however long it is."""
        self._current: int | None = None
        self._name = ""
        self._number = 1
        self.read_bytes = 0
        self.size_bytes = _size(names, fd)
        """How many bytes there are in all; None if that is not known."""

    async def next_lines(self) -> Lines | None:
        """The next lines, at least one; None at the end of the last file."""
        while True:
            if self._current is None:
                if not self._names:
                    return None
                self._open(self._names.pop(0))
            lines = await self._next_of_file()
            if lines:
                return self._numbered(lines)

    def close(self) -> None:
        """Close the file that is being read."""
        if self._current is not None and self._current != self._fd:
            os.close(self._current)
        self._current = None

    def _open(self, name: str) -> None:
        self._number = 1
        if name == STANDARD_INPUT:
            assert self._fd is not None
            self._current, self._name = self._fd, SHOWN_INPUT
        else:
            self._current, self._name = os.open(name, os.O_RDONLY), name

    async def _next_of_file(self) -> list[bytes]:
        """Some lines of the current file; at its end the last one, if it has no delimiter."""
        assert self._current is not None
        delimiter, tail = self._delimiter, self._tail
        edge = b""
        while True:
            await self._readable(self._current)
            piece = os.read(self._current, PIECE_BYTES)
            if not piece:
                self.close()
                rest = b"".join(tail)
                tail.clear()
                return [rest] if rest or delimiter is None else []
            self.read_bytes += len(piece)
            tail.append(piece)
            if delimiter is None:
                self._check_size()
                continue
            if len(delimiter) > 1:  # it may begin in one piece and end in the next
                edge = b"".join(tail) if len(tail) <= 2 else edge + piece
            if delimiter not in (edge or piece):
                edge = edge[-len(delimiter) :]
                self._check_size()
                continue
            lines = b"".join(tail).split(delimiter)
            tail[:] = [lines.pop()]
            return lines

    def _check_size(self) -> None:
        """Refuse a record that cannot be sent before it fills the memory."""
        if sum(map(len, self._tail)) > self._record_bytes_max:
            place = self._numbered([b""]).place(0)
            raise BadInput(
                f"{place} is larger than a record can be, which is {sized(self._record_bytes_max)} (max.request.size). Check "
                "--delimiter, or raise the limit: --command-property max.request.size=… and the topic's max.message.bytes"
            )

    @property
    def _word(self) -> str:
        return "line" if self._delimiter == b"\n" else "record"

    def _numbered(self, lines: list[bytes]) -> Lines:
        if self._delimiter is None:
            return Lines(lines, self._name, 0)
        first = self._number
        self._number += len(lines)
        return Lines(lines, self._name, first, self._word)

    async def _readable(self, fd: int) -> None:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if poll.poll(0):
            await asyncio.sleep(0)  # a file is always readable: let other tasks run
            return
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(fd)


def _size(names: Sequence[str], fd: int | None) -> int | None:
    """The size of all inputs together, if each is a file of the disk."""
    total = 0
    for name in names:
        try:
            found = os.fstat(fd) if name == STANDARD_INPUT and fd is not None else os.stat(name)
            at = os.lseek(fd, 0, os.SEEK_CUR) if name == STANDARD_INPUT and fd is not None else 0
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        total += max(0, found.st_size - at)
    return total


Headers = tuple[tuple[str, bytes | None], ...]
Bytes = bytes | None


class Columns(NamedTuple):
    """Records that have values, and keys and headers where these are given, and nothing else."""

    values: Sequence[Bytes]
    keys: Sequence[Bytes] | None = None
    headers: Sequence[Headers] | None = None

    def each(self) -> Iterator[tuple[Bytes, Bytes, Headers]]:
        """(value, key, headers) of each record."""
        count = len(self.values)
        keys = repeat(None, count) if self.keys is None else self.keys
        headers = repeat((), count) if self.headers is None else self.headers
        return zip(self.values, keys, headers, strict=True)

    def rows(self) -> list[Row]:
        """The records one by one."""
        return [Row(*each) for each in self.each()]


class Row(NamedTuple):
    """One record, with what its input says of it."""

    value: Bytes
    key: Bytes = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    topic: str | None = None
    line: int | None = None
    """Which line it comes from, where lines and records are not one to one."""


class Reader(Protocol):
    """Makes records of input. At malformed input it returns the records before, and sets `failure`."""

    failure: BadInput | None

    def read(self, lines: Lines) -> Columns | list[Row]: ...


NEWLINE = b"\n"
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_MEANINGS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def parse_delimiter(text: str | None) -> bytes:
    """What `--delimiter` stands for; a line feed without it."""
    if text is None:
        return NEWLINE
    found = unescape(text, "--delimiter")
    if not found:
        raise click.UsageError("--delimiter must not be empty: --whole makes one record of a file")
    return found


def unescape(text: str, flag: str) -> bytes:
    """The bytes that `text` stands for."""

    def replace(found: re.Match[bytes]) -> bytes:
        name = found[1]
        if len(name) == 3:
            return bytes([int(name[1:], 16)])
        if name not in _MEANINGS:
            raise click.UsageError(rf"{flag} has an unknown escape in {text!r}: there are \n, \r, \t, \0, \\ and \x1e")
        return _MEANINGS[name]

    return _ESCAPE.sub(replace, os.fsencode(text))


FIELDS = (
    *("topic", "partition", "offset", "timestamp", "timestampType", "leaderEpoch"),
    *("headers", "key", "key_base64", "value", "value_base64"),
)
_KNOWN = frozenset(FIELDS)
_TIMESTAMP_MAX = 2**63 - 1
_PARTITION_MAX = 2**31 - 1


class _MalformedJson(Exception):
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
            except _MalformedJson as problem:
                self.failure = BadInput(f"{lines.place(index)} {problem}")
                break
        return rows

    def _row(self, line: bytes, index: int) -> Row:
        try:
            found = json.loads(line)
        except UnicodeDecodeError:
            raise _MalformedJson("is not JSON, because it is not UTF-8: give bytes as value_base64") from None
        except (ValueError, RecursionError) as problem:
            raise _MalformedJson(f"is not JSON: {problem}. Without --json each line is the value of a record") from None
        if not isinstance(found, dict):
            raise _MalformedJson('is no JSON object: a record is one, such as {"key": "k", "value": "v"}')
        unknown = next((name for name in found if name not in _KNOWN), None)
        if unknown is not None:
            hint = did_you_mean(unknown, FIELDS) or f"a record has {', '.join(FIELDS)}"
            raise _MalformedJson(f"has a field {unknown!r} that records do not have: {hint}")
        if "value" not in found and "value_base64" not in found:
            raise _MalformedJson('has no value: give "value", "value_base64", or "value": null')
        topic = found.get("topic")
        if topic is not None and not isinstance(topic, str):
            raise _MalformedJson("has a topic that is not text")
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
            raise _MalformedJson(f"has both {name} and {name}_base64: give one of them")
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise _MalformedJson(f"has a {name}_base64 that is not base64") from None
    value = found.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _MalformedJson(f"has half of a surrogate pair in its {name}: give it as {name}_base64") from None


def _headers(found: Any) -> Headers:
    if not found:
        return ()
    if not isinstance(found, list):
        raise _MalformedJson('has headers that are not a list such as [{"name": "h", "value": "v"}]')
    headers: list[tuple[str, Bytes]] = []
    for each in found:
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str) or not each.keys() <= {"name", "value", "value_base64"}:
            raise _MalformedJson('has a header that is not of the form {"name": "h", "value": "v"}')
        try:
            name.encode("utf-8", "surrogateescape")  # which is how consumers decode names that are not UTF-8
        except UnicodeEncodeError:
            raise _MalformedJson("has half of a surrogate pair in the name of a header") from None
        headers.append((name, _member(each, "value")))
    return tuple(headers)


def _number(found: dict[str, Any], name: str, largest: int) -> int | None:
    """A whole number; None if there is none. A consumer gets -1 for the timestamp of a record that has none."""
    value = found.get(name)
    if value is None or (value == -1 and name == "timestamp"):
        return None
    if type(value) is not int or not 0 <= value <= largest:
        raise _MalformedJson(f"has a {name} that is not a whole number of at least 0: {value!r}")
    return value
