"""Deserializers of keys, values and headers, by short names or by the names of Kafka's Java classes.

Numbers look as Java prints them, so that scripts written for Kafka's tool work. Bytes that do not fit the type raise `BadData`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from struct import Struct
from uuid import UUID

import click

from ottla.errors import OttlaError
from ottla.errors.texts import counted

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
