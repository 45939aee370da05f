"""Deserializers of keys and values: the forms of `serializers.py` read back, and callables of the user's.

`resolve_deserializer` returns one function that the consumer calls with (topic, headers, data), or None for bytes: the consumer
then hands out the bytes unchanged, without a call. Null never reaches a deserializer: it is None.

A deserializer may raise anything. The consumer, which knows the record, makes the `DeserializationError` with
`undeserializable`: one poisoned record raises with its position and its raw form, and the consumer can step past it.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, cast

from ottla.client_core.serializers import FORMS, NUMBERS, Headers, arguments_of, checked_encoding, for_part, form_of, own_object
from ottla.errors import ConfigError, DeserializationError
from ottla.errors.texts import counted

if TYPE_CHECKING:
    from uuid import UUID

Deserializer = Callable[[str, Headers, bytes], Any]
"""Called with (topic, headers, data)."""


def resolve_deserializer(chosen: object, *, is_key: bool, encoding: str = "utf-8") -> Deserializer | None:
    """The deserializer for `chosen`; None where the bytes are handed out unchanged. A wrong choice is a `ConfigError`.

    `chosen` is what `resolve_serializer` takes; callables get (data) or (topic, data), an object has
    `deserialize(topic, headers, data)` or `deserialize(topic, data)`.
    """
    setting = "key_deserializer" if is_key else "value_deserializer"
    form = form_of(chosen, setting)
    if form is None:
        return _own(for_part(chosen, is_key), setting)
    if form == "bytes":
        return None
    decode = _decoder(form, checked_encoding(encoding, setting))
    return lambda topic, headers, data: decode(data)


def undeserializable(
    problem: Exception,
    *,
    topic: str,
    partition: int,
    offset: int,
    is_key: bool,
    raw_key: bytes | None,
    raw_value: bytes | None,
    raw_headers: Headers = (),
    timestamp: int = -1,
) -> DeserializationError:
    """The error for a record whose key or value a deserializer does not read; `problem` is what it raised."""
    part = "key" if is_key else "value"
    data = (raw_key if is_key else raw_value) or b""
    shown = f"{data[:16].hex(' ')}{' ...' if len(data) > 16 else ''}"
    reason = str(problem) if isinstance(problem, BadData) else f"{part}_deserializer raised {type(problem).__name__}: {problem}"
    error = DeserializationError(
        f"the {part} of the record at offset {offset} of {topic}-{partition} cannot be deserialized: {reason} "
        f"({counted(len(data), 'byte')}: {shown}); seek to {offset + 1} to step past it, or choose another {part}_deserializer",
        topic=topic,
        partition=partition,
        offset=offset,
        raw_key=raw_key,
        raw_value=raw_value,
        raw_headers=raw_headers,
        timestamp=timestamp,
        is_key=is_key,
    )
    error.__cause__ = problem
    return error


class BadData(ValueError):
    """Bytes that are not in the form; the text needs no class name in front."""


def _decoder(form: str, encoding: str) -> Callable[[bytes], Any]:
    """The function that reads bytes in `form`."""
    if form == "str":
        return lambda data: _text(data, encoding)
    if form in NUMBERS:
        return _number_decoder(form, NUMBERS[form])
    if form == "bool":
        return _decode_bool
    if form == "uuid":
        return lambda data: _decode_uuid(data, encoding)
    return _decode_void if form == "void" else _json_decoder()


def _text(data: bytes, encoding: str) -> str:
    try:
        return str(data, encoding)
    except UnicodeError as problem:
        raise BadData(f"it is not text in {encoding} ({problem})") from problem


def _number_decoder(form: str, layout: Struct) -> Callable[[bytes], Any]:
    size, unpack = layout.size, layout.unpack

    def decode(data: bytes) -> Any:
        if len(data) != size:
            raise BadData(f"{form} has {counted(size, 'byte')}")
        return unpack(data)[0]

    return decode


def _decode_bool(data: bytes) -> bool:
    if data not in (b"\x00", b"\x01"):
        raise BadData("bool is one byte, 0 or 1")
    return data == b"\x01"


def _decode_uuid(data: bytes, encoding: str) -> UUID:
    from uuid import UUID  # late: see `_is_uuid` in serializers.py

    text = _text(data, encoding)
    try:
        return UUID(text)
    except ValueError as problem:
        raise BadData("it is not a UUID in text form") from problem


def _decode_void(data: bytes) -> None:
    raise BadData("void is null, without bytes")


def _json_decoder() -> Callable[[bytes], Any]:
    import json  # late: most clients use no JSON

    loads = json.loads

    def decode(data: bytes) -> Any:
        try:
            return loads(data)
        except ValueError as problem:
            raise BadData(f"it is not JSON ({problem})") from problem

    return decode


def _own(chosen: object, setting: str) -> Deserializer:
    """What the user brought, called in the form that it has."""
    own = own_object(chosen, "deserialize", setting)
    is_method = hasattr(own, "deserialize")
    call: Any = getattr(own, "deserialize", own)
    if not callable(call):
        raise ConfigError(
            f"{setting}={chosen!r}: give one of {', '.join(FORMS)}, a callable, or an object with "
            "deserialize(topic, headers, data)"
        )
    count = arguments_of(call)
    if is_method:
        if count == 3:
            return cast(Deserializer, call)
        if count == 2:
            return lambda topic, headers, data: call(topic, data)
        raise ConfigError(
            f"{setting}={chosen!r}: its deserialize needs {count} arguments, but is called with (topic, headers, data)"
        )
    if count == 1:
        return lambda topic, headers, data: call(data)
    if count == 2:
        return lambda topic, headers, data: call(topic, data)
    raise ConfigError(f"{setting}={chosen!r}: it needs {count} arguments, but is called with (data) or (topic, data)")
