"""Decoders of record keys and values, by short name.

They are also found by the names of Kafka's decoder classes, as in kafka-dump-log's `--value-decoder-class`.
"""

import base64
import json
from collections.abc import Callable
from struct import Struct
from struct import error as struct_error

from ottla.cli.dump_log.options import RecordDecoder
from ottla.errors.texts import counted
from ottla.records.record import Record

BytesDecoder = Callable[[bytes], object]


def _number(layout: str, what: str) -> BytesDecoder:
    unpack = Struct(layout).unpack

    def decode(data: bytes) -> object:
        try:
            return unpack(data)[0]
        except struct_error:
            return f"<{counted(len(data), 'byte')}, not {what}: 0x{data[:32].hex()}{'…' if len(data) > 32 else ''}>"

    return decode


def _string(data: bytes) -> object:
    return data.decode("utf-8", "replace")


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return _string(data)


DECODERS: dict[str, BytesDecoder] = {
    "string": _string,
    "json": _json,
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode("ascii"),
    "integer": _number(">i", "an int32"),
    "long": _number(">q", "an int64"),
    "double": _number(">d", "a float64"),
}

_JAVA_PREFIX = "org.apache.kafka.tools.api."
JAVA_DECODERS = {
    f"{_JAVA_PREFIX}{name}": short
    for name, short in (
        ("StringDecoder", "string"),
        ("DefaultDecoder", "hex"),
        ("IntegerDecoder", "integer"),
        ("LongDecoder", "long"),
        ("DoubleDecoder", "double"),
    )
}


def find_decoder(name: str) -> BytesDecoder | None:
    """The decoder of a short name or a Kafka class name; None if there is none."""
    short = JAVA_DECODERS.get(name, name.lower())
    return DECODERS.get(short)


def record_decoder(key: BytesDecoder, value: BytesDecoder) -> RecordDecoder:
    """A record decoder from one for keys and one for values. Null keys and values are left out, as in Kafka's tool."""

    def decode(record: Record) -> dict[str, object]:
        fields: dict[str, object] = {}
        if record.key is not None:
            fields["key"] = key(record.key)
        if record.value is not None:
            fields["payload"] = value(record.value)
        return fields

    return decode
