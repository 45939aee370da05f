"""Serializers of keys and values: Kafka's own forms, JSON, and callables of the user's.

`resolve_serializer` turns what a user gave (a name, a Python type, a callable, an object) into one function that the producer
calls with (topic, headers, value). It returns None for bytes: the producer then takes the value unchanged, without a call.

None is Kafka's null, such as a tombstone's value, and never reaches a serializer. Every failure is a `SerializationError` that
names topic, part (key or value) and Python type. Forms, with the Java class that writes the same bytes:

    bytes    unchanged                    ByteArray, ByteBuffer, Bytes
    str      encoded, UTF-8 by default    String; text that the encoding does not have is an error here, `?` there
    int16, int32, int64                   Short, Integer, Long: big endian with a sign
    float32, float64                      Float, Double: IEEE 754, big endian
    bool     one byte, 0 or 1             Boolean
    uuid     text with hyphens            UUID
    json     UTF-8 without spaces         none; NaN and infinities are refused, since JSON has none
    void     null                         Void
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from struct import Struct
from struct import error as StructError
from typing import Any

from ottla.errors import ConfigError, SerializationError

Headers = Sequence[tuple[str, bytes | None]]
Serializer = Callable[[str, Headers, Any], bytes | None]
"""Called with (topic, headers, value)."""

FORMS = ("bytes", "str", "json", "int16", "int32", "int64", "float32", "float64", "bool", "uuid", "void")
"""The forms that Ottla brings, for serializers and deserializers."""

OTHER_NAMES = {
    "string": "str",
    "short": "int16",
    "integer": "int32",
    "int": "int64",
    "long": "int64",
    "float": "float64",
    "double": "float64",
    "boolean": "bool",
    "none": "void",
}
"""Python's int and float have 64 bits in Kafka. `integer` is Kafka's word for 32 bits, as its class name says."""

FORM_OF_TYPE: dict[object, str] = {
    bytes: "bytes",
    bytearray: "bytes",
    memoryview: "bytes",
    str: "str",
    int: "int64",
    float: "float64",
    bool: "bool",
    type(None): "void",
}

NUMBERS = {
    "int16": Struct(">h"),
    "int32": Struct(">i"),
    "int64": Struct(">q"),
    "float32": Struct(">f"),
    "float64": Struct(">d"),
}

_ADVICE = {str: "str", int: "int", float: "float", bool: "bool", dict: "json", list: "json", tuple: "json"}


def resolve_serializer(chosen: object, *, is_key: bool, encoding: str = "utf-8") -> Serializer | None:
    """The serializer for `chosen`; None where values are bytes already. A wrong choice is a `ConfigError`.

    `chosen` is one of `FORMS` or `OTHER_NAMES`, a type of `FORM_OF_TYPE`, `uuid.UUID`, a callable of (value) or (topic, value)
    that returns bytes, or an object (or its class) with `serialize(topic, headers, value)` or `serialize(topic, value)`.
    """
    setting = "key_serializer" if is_key else "value_serializer"
    part = "key" if is_key else "value"
    form = form_of(chosen, setting)
    if form is None:
        return _own(for_part(chosen, is_key), setting, part)
    if form == "bytes":
        return None
    encode = _encoder(form, checked_encoding(encoding, setting))

    def serialize(topic: str, headers: Headers, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            return encode(value)
        except Exception as problem:
            raise _refusal(topic, part, form, value, problem) from problem

    return serialize


def refuse_unserialized(topic: str, value: object, *, is_key: bool) -> SerializationError:
    """The error for a value that is not bytes where no serializer is set."""
    part = "key" if is_key else "value"
    return SerializationError(
        f"the {part} for topic {topic} is {_kind(value)}, and without a {part}_serializer only bytes can be sent; "
        f"{_advice(part, value)}"
    )


def form_of(chosen: object, setting: str) -> str | None:
    """The one of `FORMS` that `chosen` names; None for a callable or an object of the user's."""
    if chosen is None:
        return "bytes"
    if isinstance(chosen, str):
        form = OTHER_NAMES.get(chosen.lower(), chosen.lower())
        if form not in FORMS:
            raise ConfigError(f"{setting}={chosen!r}: there is no such form; use {', '.join(FORMS)}, or pass a callable")
        return form
    if not isinstance(chosen, type):
        return None
    return "uuid" if _is_uuid(chosen) else FORM_OF_TYPE.get(chosen)


def for_part(chosen: object, is_key: bool) -> object:
    """An object that works on keys differently, such as those of `ottla.schemas`, in its form for keys."""
    return chosen.for_key() if is_key and hasattr(chosen, "for_key") and not isinstance(chosen, type) else chosen


def _is_uuid(kind: type) -> bool:
    """Whether this is `uuid.UUID`. By its name: importing the module takes 3 ms, and few clients use it."""
    return (kind.__module__, kind.__qualname__) == ("uuid", "UUID")


def checked_encoding(encoding: str, setting: str) -> str:
    """Python's name for an encoding, which may be spelt as Java does."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ConfigError(f"{setting}: Python knows no encoding {encoding!r}; use utf-8, or another of its codecs") from None


def own_object(chosen: object, method: str, setting: str) -> object:
    """An object of the user's: `chosen` itself, or made from it if it is a class that has `method`."""
    if not isinstance(chosen, type) or not hasattr(chosen, method):
        return chosen
    try:
        return chosen()
    except Exception as problem:
        raise ConfigError(
            f"{setting}={chosen.__qualname__}: the class cannot be made without arguments ({problem}); pass an object of it"
        ) from problem


def arguments_of(call: Callable[..., Any]) -> int:
    """How many arguments `call` must be given by position; 1 where Python cannot tell, as for many C functions."""
    import inspect  # late: it is slow to import, and few clients bring their own callables

    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return 1
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in by_position and one.default is inspect.Parameter.empty]
    if not needed and any(one.kind in (*by_position, inspect.Parameter.VAR_POSITIONAL) for one in parameters):
        return 1
    return len(needed)


def _encoder(form: str, encoding: str) -> Callable[[Any], bytes | None]:
    """The function that writes a value which is not None in `form`."""
    if form == "str":
        return lambda value: str.encode(value, encoding)
    if form in NUMBERS:
        return NUMBERS[form].pack
    if form == "bool":
        return _encode_bool
    if form == "uuid":
        return lambda value: str(_checked_uuid(value)).encode(encoding)
    return _encode_void if form == "void" else _json_encoder()


def _encode_bool(value: object) -> bytes:
    return b"\x01" if _checked(value, bool) else b"\x00"


def _encode_void(value: object) -> bytes:
    raise TypeError("only None can be sent as void")


def _json_encoder() -> Callable[[Any], bytes]:
    import json  # late: most clients use no JSON

    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    return lambda value: encode(value).encode()


def _checked_uuid(value: Any) -> Any:
    from uuid import UUID

    return _checked(value, UUID)


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} expected")
    return value


def _own(chosen: object, setting: str, part: str) -> Serializer:
    """What the user brought, called in the form that it has, with its result checked."""
    own = own_object(chosen, "serialize", setting)
    is_method = hasattr(own, "serialize")
    call: Any = getattr(own, "serialize", own)
    if not callable(call):
        raise ConfigError(
            f"{setting}={chosen!r}: give one of {', '.join(FORMS)}, a callable, or an object with "
            "serialize(topic, headers, value)"
        )
    count = arguments_of(call)
    allowed = (2, 3) if is_method else (1, 2)
    if count not in allowed:
        forms = "serialize(topic, headers, value)" if is_method else "(value) or (topic, value)"
        raise ConfigError(f"{setting}={chosen!r}: it needs {count} arguments, but is called with {forms}")

    def serialize(topic: str, headers: Headers, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            data = call(value) if count == 1 else call(topic, value) if count == 2 else call(topic, headers, value)
        except SerializationError:
            raise
        except Exception as problem:
            raise SerializationError(
                f"the {part} for topic {topic}, {_kind(value)}, cannot be serialized: {setting} raised "
                f"{type(problem).__name__}: {problem}"
            ) from problem
        if data is None or type(data) is bytes:
            return data
        if isinstance(data, bytes | bytearray | memoryview):
            return bytes(data)
        hint = "; add .encode() to what it returns" if isinstance(data, str) else ""
        raise SerializationError(
            f"{setting} returned {_kind(data)} for the {part} for topic {topic}; it must return bytes{hint}"
        )

    return serialize


def _refusal(topic: str, part: str, form: str, value: object, problem: Exception) -> SerializationError:
    """Why one of our forms does not take `value`."""
    what = f"the {part} for topic {topic} cannot be serialized as {form}"
    if isinstance(problem, UnicodeError):
        return SerializationError(f"{what}: {problem}; send it as bytes, or choose another encoding")
    if isinstance(value, int) and form in NUMBERS and isinstance(problem, StructError | OverflowError):
        return SerializationError(
            f"{what}: {value if abs(value) < 1 << 128 else 'the number'} is out of its range; use a wider form, or str"
        )
    if form == "float32" and isinstance(value, float):
        return SerializationError(f"{what}: {value} is out of its range; use float64")
    if form == "json":
        return SerializationError(
            f"{what}: it is {_kind(value)} ({problem}); convert it first, or pass a callable as {part}_serializer"
        )
    return SerializationError(f"{what}: it is {_kind(value)}; {_advice(part, value)}")


def _advice(part: str, value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"leave {part}_serializer out to send bytes, or decode them first"
    name = "uuid" if _is_uuid(type(value)) else _ADVICE.get(type(value))
    if name is None:
        return f"convert it first, or pass a callable that returns bytes as {part}_serializer"
    return f'set {part}_serializer="{name}", or convert it first'


def _kind(value: object) -> str:
    """A value's type as people write it: `dict`, `decimal.Decimal`."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
