"""Formatters of records: Kafka's, and JSON.

A formatter turns the records of one batch into bytes for standard output. Kafka's default prints timestamp, partition, offset,
epoch, headers, key and value, in this order and separated by `key.separator`.
Numbers look as Java prints them, so that scripts written for Kafka's tool work. Deserializers have short names and the names of
Kafka's classes; bytes that do not fit the type raise `BadData`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

import click

from ottla.cli.common.output import escape_bytes, escape_json, say
from ottla.cli.common.settings import unknown_property
from ottla.errors import OttlaError
from ottla.errors.texts import counted
from ottla.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.records.kernels import Record

    Shown = Record | ConsumerRecord[bytes | None, bytes | None]


Deserializer = Callable[[bytes], object]

_FLOAT = Struct(">f")
_JAVA_PREFIX = "org.apache.kafka.common.serialization."
_JAVA_PLAIN_FROM, _JAVA_PLAIN_TO = 1e-3, 1e7
"""Java writes numbers between these without an exponent."""


class BadData(OttlaError):
    """Bytes that the chosen deserializer cannot read."""


def _number(layout: str, what: str) -> Deserializer:
    shape = Struct(layout)

    def deserialize(data: bytes) -> object:
        if len(data) != shape.size:
            raise BadData(f"{counted(len(data), 'byte')} cannot be {what}, which has {shape.size}")
        return shape.unpack(data)[0]

    return deserialize


def _float(data: bytes) -> object:
    if len(data) != 4:
        raise BadData(f"{counted(len(data), 'byte')} cannot be float, which has 4")
    (value,) = _FLOAT.unpack(data)
    for digits in range(1, 10):  # the shortest that reads back as the same 32 bits
        shortest = float(f"{value:.{digits}g}")
        try:
            if _FLOAT.pack(shortest) == data:
                return shortest
        except OverflowError:
            continue  # rounded up beyond the largest float32
    return value


def _boolean(data: bytes) -> object:
    if data not in (b"\0", b"\1"):
        raise BadData(f"{data[:8].hex()} is not a boolean, which is 00 or 01")
    return data == b"\1"


def _uuid(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    try:
        return str(UUID(text))
    except ValueError:
        raise BadData(f"{text[:60]!r} is not a UUID") from None


def _nothing(data: bytes) -> object:
    raise BadData(f"{counted(len(data), 'byte')} cannot be void, which is null")


def _escaped(data: bytes) -> object:
    r"""Printable ASCII unchanged, other bytes as \x.., like `toString` of Kafka's `Bytes`."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 0x5C else f"\\x{byte:02X}" for byte in data)


DESERIALIZERS: dict[str, Deserializer] = {
    "string": lambda data: data.decode("utf-8", "replace"),
    "bytes": _escaped,
    "integer": _number(">i", "integer"),
    "long": _number(">q", "long"),
    "short": _number(">h", "short"),
    "float": _float,
    "double": _number(">d", "double"),
    "boolean": _boolean,
    "uuid": _uuid,
    "void": _nothing,
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode("ascii"),
}

_JAVA_CLASSES = {
    "StringDeserializer": "string",
    "BytesDeserializer": "bytes",
    "IntegerDeserializer": "integer",
    "LongDeserializer": "long",
    "ShortDeserializer": "short",
    "FloatDeserializer": "float",
    "DoubleDeserializer": "double",
    "BooleanDeserializer": "boolean",
    "UUIDDeserializer": "uuid",
    "VoidDeserializer": "void",
}
RAW_JAVA_CLASSES = ("ByteArrayDeserializer", "ByteBufferDeserializer")
"""Java prints the object's address for these. Here the bytes are printed unchanged, as without a deserializer."""


def find_deserializer(name: str, flag: str) -> Deserializer | None:
    """The deserializer of this name; None for bytes unchanged."""
    plain = name.removeprefix(_JAVA_PREFIX)
    if plain in RAW_JAVA_CLASSES or plain == "raw":
        return None
    found = DESERIALIZERS.get(_JAVA_CLASSES.get(plain, plain.lower()))
    if found is None:
        raise click.UsageError(
            f"{flag}: there is no deserializer {name!r}; choose one of {', '.join(DESERIALIZERS)}, or one of Kafka's classes. "
            "Other Java classes cannot run here"
        )
    return found


def as_text(value: object) -> str:
    """A deserialized value as Java's tools print it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_float(value)
    return str(value)


def _java_float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _JAVA_PLAIN_FROM <= abs(value) < _JAVA_PLAIN_TO:
        text = repr(value)
        return text if "e" not in text else f"{value:f}"
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = mantissa.replace("-", "").replace(".", "")
        point = mantissa.replace("-", "").index(".")
        leading = len(digits) - len(digits.lstrip("0"))
        exponent = str(point - leading - 1)
        digits = digits.strip("0")
        mantissa = ("-" if value < 0 else "") + digits[0] + "." + (digits[1:] or "0")
    elif "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


PARTS = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
DESERIALIZED = ("key", "value", "headers")
PROPERTIES = (
    *(f"print.{part}" for part in PARTS),
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
    *(f"{part}.deserializer" for part in DESERIALIZED),
)
_PREFIXES = ("org.apache.kafka.tools.consumer.", "kafka.tools.")
NAMES = {"DefaultMessageFormatter": "default", "NoOpMessageFormatter": "no-op", "LoggingMessageFormatter": "logging"}


class Formatter(Protocol):
    """Turns the records of one batch into output."""

    def format(self, partition: TopicPartition, batch: Consumed) -> bytes: ...


def find_formatter(name: str, properties: Mapping[str, str], skip_bad: bool = False, for_terminal: bool = False) -> Formatter:
    """The formatter of a short name or of one of Kafka's class names, configured by `properties`.

    With `for_terminal`, control characters in keys, values and headers are escaped.
    """
    plain = name
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    match NAMES.get(plain, plain.lower()):
        case "default":
            return LineFormatter(properties, skip_bad, for_terminal)
        case "json":
            return JsonFormatter(properties, skip_bad)
        case "no-op":
            return NoOpFormatter()
        case "logging":
            return LoggingFormatter(LineFormatter(properties, skip_bad, for_terminal))
    raise click.UsageError(
        f"there is no formatter {name!r}: choose default, no-op, logging or json; other Java classes cannot run here"
    )


class _Deserializers:
    """The deserializers of keys, values and headers; bytes stay unchanged where none is chosen."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        for name in properties:
            is_known = name in PROPERTIES or name == "header.deserializer"
            if not is_known and not name.startswith(tuple(f"{part}.deserializer." for part in DESERIALIZED)):
                raise click.UsageError(f"the formatter has no property {name}: {unknown_property(name, PROPERTIES)}")
        found: dict[str, Deserializer | None] = {}
        for part in DESERIALIZED:
            chosen = properties.get(f"{part}.deserializer")
            if part == "headers":
                chosen = chosen or properties.get("header.deserializer")
            found[part] = None if chosen is None else find_deserializer(chosen, f"{part}.deserializer")
        self.key, self.value, self.headers = (found[part] for part in DESERIALIZED)


class CannotShow(BadData):
    """A record cannot be shown. `before` is the output of the records before it in its batch, `records` counts them and it."""

    def __init__(self, partition: TopicPartition, record: Shown, problem: BadData, before: bytes, records: int) -> None:
        super().__init__(
            f"the record at offset {record.offset} of partition {partition} cannot be shown: {problem}. Choose another "
            "deserializer, or --skip-message-on-error"
        )
        self.before = before
        self.records = records


class LineFormatter:
    """Kafka's default formatter."""

    def __init__(self, properties: Mapping[str, str], skip_bad: bool = False, for_terminal: bool = False) -> None:
        self._for_terminal = for_terminal
        self._deserializers = _Deserializers(properties)
        self._skip_bad = skip_bad
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._shown = [
            part
            for part in PARTS
            if properties.get(f"print.{part}", "true" if part == "value" else "false").strip().lower() == "true"
        ]

    def format(self, partition: TopicPartition, batch: Consumed) -> bytes:
        end = self._line_separator
        if self._shown == ["value"] and self._deserializers.value is None and not self._for_terminal:
            null = self._null
            return end.join([null if record.value is None else record.value for record in batch.records]) + end
        if not self._shown:
            return b""
        lines = []
        for record in batch.records:
            try:
                lines.append(self._key_separator.join([self._part(part, partition, batch, record) for part in self._shown]))
            except BadData as problem:
                if not self._skip_bad:
                    before = b"".join(line + end for line in lines)
                    raise CannotShow(partition, record, problem, before, len(lines) + 1) from None
        return end.join(lines) + end if lines else b""

    def _part(self, part: str, partition: TopicPartition, batch: Consumed, record: Shown) -> bytes:
        match part:
            case "value":
                return self._data(record.value, self._deserializers.value)
            case "key":
                return self._data(record.key, self._deserializers.key)
            case "timestamp":
                return f"{batch.timestamp_type}:{record.timestamp}".encode()
            case "partition":
                return b"Partition:%d" % partition.partition
            case "offset":
                return b"Offset:%d" % record.offset
            case "epoch":
                return b"Epoch:%d" % batch.leader_epoch if batch.leader_epoch >= 0 else b"Epoch:NOT_PRESENT"
            case "headers":
                return self._headers(record)
        return b"Delivery:NOT_PRESENT"  # only share groups count deliveries

    def _headers(self, record: Shown) -> bytes:
        headers = [
            self._safe(name.encode()) + b":" + self._data(value, self._deserializers.headers) for name, value in record.headers
        ]
        return self._headers_separator.join(headers) if headers else b"NO_HEADERS"

    def _data(self, data: bytes | None, deserializer: Deserializer | None) -> bytes:
        if data is None:
            return self._null
        return self._safe(data if deserializer is None else as_text(deserializer(data)).encode())

    def _safe(self, data: bytes) -> bytes:
        return escape_bytes(data).encode() if self._for_terminal else data


class NoOpFormatter:
    """Prints nothing; records are only counted."""

    def format(self, partition: TopicPartition, batch: Consumed) -> bytes:
        return b""


class LoggingFormatter:
    """Prints like the default formatter, and also logs every record on standard error."""

    def __init__(self, inner: LineFormatter) -> None:
        self._inner = inner

    def format(self, partition: TopicPartition, batch: Consumed) -> bytes:
        for record in batch.records:
            key = "null" if record.key is None else record.key.decode("utf-8", "replace")
            value = "null" if record.value is None else record.value.decode("utf-8", "replace")
            say(f"{batch.timestamp_type}:{record.timestamp}, key:{key}, value:{value}", err=True)
        return self._inner.format(partition, batch)


class JsonFormatter:
    """One JSON object a line. Bytes that are not UTF-8 appear in base64, under another name: `value_base64`."""

    def __init__(self, properties: Mapping[str, str], skip_bad: bool = False) -> None:
        self._deserializers = _Deserializers(properties)
        self._skip_bad = skip_bad

    def format(self, partition: TopicPartition, batch: Consumed) -> bytes:
        lines: list[str] = []
        for record in batch.records:
            try:
                shown = self._record(partition, batch, record)
            except BadData as problem:
                if not self._skip_bad:
                    before = "".join(lines).encode()
                    raise CannotShow(partition, record, problem, before, len(lines) + 1) from None
            else:
                lines.append(escape_json(json.dumps(shown, ensure_ascii=False)) + "\n")
        return "".join(lines).encode()

    def _record(self, partition: TopicPartition, batch: Consumed, record: Shown) -> dict[str, object]:
        headers = [{"name": name, **_member("value", value, self._deserializers.headers)} for name, value in record.headers]
        return {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": batch.timestamp_type,
            "leaderEpoch": batch.leader_epoch,
            "headers": headers,
            **_member("key", record.key, self._deserializers.key),
            **_member("value", record.value, self._deserializers.value),
        }


def _member(name: str, data: bytes | None, deserializer: Deserializer | None) -> dict[str, object]:
    if data is None:
        return {name: None}
    if deserializer is not None:
        return {name: deserializer(data)}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_SHARED = attrgetter("timestamp_type", "leader_epoch")


class Consumed(NamedTuple):
    """Records in order, and what they share."""

    records: Sequence[Shown]
    timestamp_type: str
    leader_epoch: int


def group_records(records: Sequence[ConsumerRecord[bytes | None, bytes | None]]) -> Iterator[Consumed]:
    """Records of one partition, cut where the kind of timestamp or the leader epoch changes."""
    epoch = records[0].leader_epoch
    # Epochs never go down within a partition, so the last record is enough for them.
    if records[-1].leader_epoch == epoch and len({record.timestamp_type for record in records}) == 1:
        yield Consumed(records, TIMESTAMP_TYPES[records[0].timestamp_type], epoch)
        return
    for (timestamp_type, each), group in groupby(records, _SHARED):
        yield Consumed(list(group), TIMESTAMP_TYPES[timestamp_type], each)
