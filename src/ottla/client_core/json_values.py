"""`json_of`: a class as JSON, for `value_serializer` and `value_deserializer`. Pure.

Dataclasses are read by their annotations: fields may be dataclasses, unions, lists, dicts, dates, decimals, enums, UUIDs and
bytes. What is missing takes its default; fields that the class does not have are ignored, so that writers may add some before
readers know them. Models and dataclasses of pydantic (version 2) validate and write themselves, with their aliases.

    decimal: a string       datetime, date, time: ISO 8601       timedelta: seconds       enum: its value
    UUID: a string          bytes: base64                        set, tuple: an array
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Generic, TypeVar
from uuid import UUID

from ottla.client_core.deserializers import BadData
from ottla.client_core.serializers import Headers
from ottla.errors import ConfigError, SerializationError

T = TypeVar("T")
Decode = Callable[[Any], Any]


class JsonOf(Generic[T]):
    """A serializer and a deserializer of one class. `json_of` makes it."""

    def __init__(self, kind: type[T], dump: Callable[[T], bytes], load: Callable[[bytes], T]) -> None:
        self.kind = kind
        self._dump = dump
        self._load = load

    def serialize(self, topic: str, headers: Headers, value: T) -> bytes:
        """The value as JSON."""
        if not isinstance(value, self.kind):
            raise SerializationError(
                f"the value for topic {topic} is {_name(type(value))}, and json_of({_name(self.kind)}) takes only that class: "
                "make one, or use another serializer"
            )
        try:
            return self._dump(value)
        except Exception as problem:
            raise SerializationError(f"the {_name(self.kind)} for topic {topic} cannot be serialized: {problem}") from problem

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> T:
        """The value that JSON describes."""
        return self._load(data)

    def __repr__(self) -> str:
        return f"json_of({_name(self.kind)})"


def json_of(kind: type[T]) -> JsonOf[T]:
    """Keys or values that are objects of `kind`, a dataclass or a pydantic model, written as JSON.

    Use it as serializer and as deserializer: `Producer(..., value_serializer=json_of(Order))`.
    """
    if isinstance(kind, type) and (hasattr(kind, "__pydantic_validator__") or hasattr(kind, "model_validate_json")):
        return JsonOf(kind, *_pydantic(kind))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        decode = _Decoders().of(kind)
        return JsonOf(kind, _dump, lambda data: typing.cast(T, _load(kind, decode, data)))
    raise ConfigError(f"json_of({kind!r}): it takes a dataclass or a pydantic model; for other JSON, use the serializer json")


# Dataclasses, from JSON


class _Mismatch(Exception):
    """A part of the JSON is not what its class says; `path` grows on the way up."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.path = ""

    def __str__(self) -> str:
        return f"{self.path.lstrip('.')}: {self.text}" if self.path else self.text

    def at(self, step: str) -> _Mismatch:
        self.path = step + self.path
        return self


def _load(kind: type, decode: Decode, data: bytes) -> Any:
    try:
        plain = json.loads(data)
    except ValueError as problem:
        raise BadData(f"it is not JSON ({problem})") from problem
    try:
        return decode(plain)
    except _Mismatch as problem:
        raise BadData(f"it is not {_a(kind)}: {problem}") from problem


class _Decoders:
    """The functions that make values of types from plain JSON, each built once."""

    def __init__(self) -> None:
        self._dataclasses: dict[type, Decode] = {}

    def of(self, hint: Any) -> Decode:
        """The function for a type. A type that JSON cannot hold is a `ConfigError`."""
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__)
        if hint is Any or hint is object:
            return lambda plain: plain
        if hint is None or hint is type(None):
            return _none
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self._dataclass(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _enum(hint)
        if hint in _SCALARS:
            return _SCALARS[hint]
        return self._composed(hint)

    def _composed(self, hint: Any) -> Decode:
        origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
        if origin is typing.Annotated:
            return self.of(arguments[0])
        if origin is typing.Union or origin is types.UnionType:
            return _union([self.of(each) for each in arguments], hint)
        if origin is typing.Literal:
            return _literal(arguments)
        if isinstance(origin, type) and issubclass(origin, tuple):
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return _array(tuple, self.of(arguments[0]))
            return _fixed([self.of(each) for each in arguments]) if arguments else _array(tuple, self.of(Any))
        if isinstance(origin, type) and issubclass(origin, Mapping):
            key, value = arguments or (str, Any)
            return _object(self.of(key), key, self.of(value))
        if isinstance(origin, type) and issubclass(origin, Set):
            return _array(frozenset if origin is frozenset else set, self.of(arguments[0] if arguments else Any))
        if isinstance(origin, type) and issubclass(origin, Sequence):
            return _array(list, self.of(arguments[0] if arguments else Any))
        raise ConfigError(
            f"json_of cannot read a field of type {hint!r}: use dataclasses, str, int, float, bool, datetime, date, time, "
            "timedelta, Decimal, UUID, bytes, enums, and lists, dicts and unions of them"
        )

    def _dataclass(self, kind: type) -> Decode:
        if kind in self._dataclasses:  # maybe not complete yet: it contains itself
            return lambda plain: self._dataclasses[kind](plain)
        self._dataclasses[kind] = lambda plain: plain
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except NameError as problem:
            raise ConfigError(
                f"json_of({_name(kind)}): the type of a field is not known ({problem}): define it at the top of its module"
            ) from None
        fields: list[tuple[str, Decode, bool]] = []
        for field in dataclasses.fields(kind):
            if field.init:
                has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
                fields.append((field.name, self.of(hints[field.name]), has_default))

        def decode(plain: Any) -> Any:
            if type(plain) is not dict:
                raise _Mismatch(f"expected an object with the fields of {_name(kind)}, got {_shown(plain)}")
            arguments = {}
            for name, decode_field, has_default in fields:
                if name in plain:
                    try:
                        arguments[name] = decode_field(plain[name])
                    except _Mismatch as problem:
                        raise problem.at(f".{name}") from None
                elif not has_default:
                    raise _Mismatch("the field is missing").at(f".{name}")
            try:
                return kind(**arguments)
            except Exception as problem:  # its own checks, in __post_init__
                raise _Mismatch(f"{_name(kind)} refused it: {type(problem).__name__}: {problem}") from problem

        self._dataclasses[kind] = decode
        return decode


def _none(plain: Any) -> None:
    if plain is not None:
        raise _Mismatch(f"expected null, got {_shown(plain)}")


def _exactly(kind: type, word: str) -> Decode:
    def decode(plain: Any) -> Any:
        if type(plain) is not kind:
            raise _Mismatch(f"expected {word}, got {_shown(plain)}")
        return plain

    return decode


def _float(plain: Any) -> float:
    if type(plain) is not float and type(plain) is not int:
        raise _Mismatch(f"expected a number, got {_shown(plain)}")
    return float(plain)


def _decimal(plain: Any) -> Decimal:
    if type(plain) not in (str, int, float):
        raise _Mismatch(f"expected a decimal as a string, got {_shown(plain)}")
    try:
        return Decimal(str(plain))
    except InvalidOperation:
        raise _Mismatch(f"expected a decimal, got {_shown(plain)}") from None


def _timedelta(plain: Any) -> timedelta:
    return timedelta(seconds=_float(plain))


def _from_text(read: Callable[[str], Any], word: str) -> Decode:
    def decode(plain: Any) -> Any:
        if type(plain) is not str:
            raise _Mismatch(f"expected {word} as a string, got {_shown(plain)}")
        try:
            return read(plain)
        except ValueError:
            raise _Mismatch(f"expected {word}, got {_shown(plain)}") from None

    return decode


_SCALARS: dict[Any, Decode] = {
    str: _exactly(str, "a string"),
    int: _exactly(int, "a whole number"),
    bool: _exactly(bool, "true or false"),
    float: _float,
    Decimal: _decimal,
    timedelta: _timedelta,
    datetime: _from_text(datetime.fromisoformat, "a date and time of ISO 8601"),
    date: _from_text(date.fromisoformat, "a date of ISO 8601"),
    time: _from_text(time.fromisoformat, "a time of ISO 8601"),
    UUID: _from_text(UUID, "a UUID"),
    bytes: _from_text(lambda text: base64.b64decode(text, validate=True), "bytes in base64"),
    dict: _exactly(dict, "an object"),
    list: _exactly(list, "an array"),
}


def _enum(kind: type[Enum]) -> Decode:
    values = {member.value: member for member in kind}
    words = ", ".join(json.dumps(value, default=str) for value in values)

    def decode(plain: Any) -> Enum:
        try:
            return values[plain]
        except (KeyError, TypeError):
            raise _Mismatch(f"expected one of {words}, got {_shown(plain)}") from None

    return decode


def _literal(allowed: tuple[Any, ...]) -> Decode:
    def decode(plain: Any) -> Any:
        for each in allowed:
            if plain == each and type(plain) is type(each):
                return each
        raise _Mismatch(f"expected one of {', '.join(map(json.dumps, allowed))}, got {_shown(plain)}")

    return decode


def _union(decoders: list[Decode], hint: Any) -> Decode:
    def decode(plain: Any) -> Any:
        problems = []
        for each in decoders:
            try:
                return each(plain)
            except _Mismatch as problem:
                if each is not _none:
                    problems.append(problem)
        if len(problems) == 1:
            raise problems[0]
        raise _Mismatch(f"it fits none of {hint}: {'; '.join(map(str, problems))}")

    return decode


def _array(make: Callable[[list[Any]], Any], decode_item: Decode) -> Decode:
    def decode(plain: Any) -> Any:
        if type(plain) is not list:
            raise _Mismatch(f"expected an array, got {_shown(plain)}")
        found = []
        for number, each in enumerate(plain):
            try:
                found.append(decode_item(each))
            except _Mismatch as problem:
                raise problem.at(f"[{number}]") from None
        return make(found)

    return decode


def _fixed(decoders: list[Decode]) -> Decode:
    def decode(plain: Any) -> Any:
        if type(plain) is not list or len(plain) != len(decoders):
            raise _Mismatch(f"expected an array of {len(decoders)}, got {_shown(plain)}")
        found = []
        for number, (decode_item, each) in enumerate(zip(decoders, plain, strict=True)):
            try:
                found.append(decode_item(each))
            except _Mismatch as problem:
                raise problem.at(f"[{number}]") from None
        return tuple(found)

    return decode


def _object(decode_key: Decode, key_hint: Any, decode_value: Decode) -> Decode:
    is_number = key_hint in (int, float, bool)
    if isinstance(key_hint, type) and issubclass(key_hint, Enum):
        is_number = all(isinstance(member.value, int | float) for member in key_hint)

    def decode(plain: Any) -> Any:
        if type(plain) is not dict:
            raise _Mismatch(f"expected an object, got {_shown(plain)}")
        found = {}
        for key, value in plain.items():
            try:
                found[decode_key(_number(key) if is_number else key)] = decode_value(value)
            except _Mismatch as problem:
                raise problem.at(f"[{json.dumps(key)}]") from None
        return found

    return decode


def _number(key: str) -> Any:
    """A key that JSON has written as a string."""
    try:
        return json.loads(key)
    except ValueError:
        return key


# Dataclasses, to JSON


def _dump(value: Any) -> bytes:
    try:
        plain = _plain(value)
    except _Mismatch as problem:
        raise ValueError(str(problem)) from None
    try:
        return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        raise ValueError(f"{_not_finite(plain, '')}: JSON has no form for infinity and not-a-number") from None


def _not_finite(plain: Any, path: str) -> str:
    """Where the first number lies that JSON cannot hold."""
    if isinstance(plain, float) and not math.isfinite(plain):
        return path.lstrip(".")
    parts: list[tuple[str, Any]] = []
    if isinstance(plain, dict):
        parts = [(f"{path}.{key}", each) for key, each in plain.items()]
    elif isinstance(plain, list):
        parts = [(f"{path}[{number}]", each) for number, each in enumerate(plain)]
    return next((found for each_path, each in parts if (found := _not_finite(each, each_path))), "")


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    kind = type(value)
    if kind in _ITSELF:
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _part(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_part(f"[{number}]", each) for number, each in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key): _part(f"[{json.dumps(str(key))}]", each) for key, each in value.items()}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, str | int | float):  # a subclass
        return value
    raise _Mismatch(f"JSON has no form for {_name(kind)}")


_ITSELF = frozenset({str, int, float, bool, type(None)})


def _part(step: str, value: Any) -> Any:
    if type(value) in _ITSELF:
        return value
    try:
        return _plain(value)
    except _Mismatch as problem:
        raise problem.at(step) from None


def _key(key: Any) -> str | int | float | bool:
    plain = _plain(key)
    if not isinstance(plain, str | int | float):
        raise _Mismatch(f"a key of an object cannot be {_name(type(key))}")
    return plain


# Pydantic is not imported here: a program that has a model has imported it.


def _pydantic(kind: type) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    if hasattr(kind, "model_validate_json"):
        model: Any = kind
        read: Callable[[bytes], Any] = model.model_validate_json

        def write(value: Any) -> bytes:
            text: str = value.model_dump_json(by_alias=True)
            return text.encode()
    else:  # a dataclass of pydantic
        from pydantic import TypeAdapter

        adapter: Any = TypeAdapter(kind)
        read = adapter.validate_json

        def write(value: Any) -> bytes:
            data: bytes = adapter.dump_json(value, by_alias=True)
            return data

    def load(data: bytes) -> Any:
        try:
            return read(data)
        except ValueError as problem:  # pydantic's ValidationError is one
            errors = problem.errors() if hasattr(problem, "errors") else []
            found = "; ".join(f"{_path(each['loc'])}{each['msg']}" for each in errors) or str(problem)
            raise BadData(f"it is not {_a(kind)}: {found}") from problem

    return write, load


def _path(steps: Sequence[Any]) -> str:
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in steps).lstrip(".")
    return f"{text}: " if text else ""


# Words


def _name(kind: type) -> str:
    return kind.__qualname__


def _a(kind: type) -> str:
    name = _name(kind)
    return f"an {name}" if name[:1] in "AEIOUaeiou" else f"a {name}"


def _shown(plain: Any) -> str:
    """A part of JSON for an error, not too long."""
    text = json.dumps(plain, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."
