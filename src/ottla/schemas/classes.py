"""Avro schemas from dataclasses and pydantic models, and their objects to and from what fastavro writes and reads.

    str string      int long      float double      bool boolean      bytes bytes      UUID string (uuid)
    datetime long (timestamp-micros)      date int (date)      time long (time-micros)      Decimal bytes (decimal 38, 9)
    Enum enum       list array    dict[str, T] map    T | None union     another class: a record

A field with a default has it in the schema too, so that readers know what to put where a writer did not have the field. The
record has the class's name; `__avro_namespace__` on the class gives it a namespace.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from ottla.errors import ConfigError

Convert = Callable[[Any], Any]
NAMESPACE = "__avro_namespace__"
DECIMAL_PRECISION, DECIMAL_SCALE = 38, 9
_NO_DEFAULT: Any = object()
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS: dict[Any, Any] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "bytes",
    type(None): "null",
    UUID: {"type": "string", "logicalType": "uuid"},
    datetime: {"type": "long", "logicalType": "timestamp-micros"},
    date: {"type": "int", "logicalType": "date"},
    time: {"type": "long", "logicalType": "time-micros"},
    Decimal: {"type": "bytes", "logicalType": "decimal", "precision": DECIMAL_PRECISION, "scale": DECIMAL_SCALE},
}


class AvroClass(NamedTuple):
    """A class as Avro has it: its schema, and its objects to and from dicts."""

    schema_text: str
    dump: Convert
    load: Convert


class _Shape(NamedTuple):
    """A type's schema, and its values to and from fastavro's; None where they are the same."""

    schema: Any
    dump: Convert | None = None
    load: Convert | None = None


class _FieldOf(NamedTuple):
    name: str
    hint: Any
    default: Any


def is_class(given: object) -> bool:
    """Whether this is a dataclass or a pydantic model."""
    return isinstance(given, type) and (dataclasses.is_dataclass(given) or _is_pydantic(given))


def _is_pydantic(kind: type) -> bool:
    return hasattr(kind, "model_validate") and hasattr(kind, "model_fields")


def avro_class(kind: type) -> AvroClass:
    """The schema and the conversions of a class. A field that Avro cannot hold is a `ConfigError` that names it."""
    shape = _Shapes().of(kind, kind.__qualname__)
    assert shape.dump is not None
    assert shape.load is not None
    return AvroClass(json.dumps(shape.schema, separators=(",", ":"), ensure_ascii=False), shape.dump, shape.load)


class _Shapes:
    def __init__(self) -> None:
        self._records: dict[type, list[Convert]] = {}
        """The dump and load of records that are written already; a record may contain itself."""

    def of(self, hint: Any, where: str) -> _Shape:
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__, where)
        if typing.get_origin(hint) is typing.Annotated:
            return self.of(typing.get_args(hint)[0], where)
        if hint is None or hint in _SCALARS:
            return _Shape(_SCALARS[type(None) if hint is None else hint])
        if is_class(hint):
            return self._record(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._enum(hint, where)
        origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments, where)
        if origin is typing.Literal and all(isinstance(each, str) for each in arguments):
            return _Shape("string")
        if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2 and arguments[0] is str:
            items = self.of(arguments[1], where)
            return _Shape({"type": "map", "values": items.schema}, _of_values(items.dump), _of_values(items.load))
        if isinstance(origin, type) and issubclass(origin, Sequence | Set) and arguments:
            if issubclass(origin, tuple) and (len(arguments) != 2 or arguments[1] is not Ellipsis):
                raise _unfit(hint, where)
            items = self.of(arguments[0], where)
            make = origin if origin in (set, frozenset, tuple) else list
            return _Shape({"type": "array", "items": items.schema}, _of_items(items.dump, list), _of_items(items.load, make))
        raise _unfit(hint, where)

    def _record(self, kind: type) -> _Shape:
        namespace = getattr(kind, NAMESPACE, "")
        full = f"{namespace}.{kind.__name__}" if namespace else kind.__name__
        if kind in self._records:
            made = self._records[kind]
            return _Shape(full, lambda value: made[0](value), lambda value: made[1](value))
        made = self._records[kind] = []
        shapes = {each.name: self.of(each.hint, f"{kind.__qualname__}.{each.name}") for each in _fields(kind)}
        schema: dict[str, Any] = {"type": "record", "name": kind.__name__}
        if namespace:
            schema["namespace"] = namespace
        if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
            schema["doc"] = kind.__doc__.strip().splitlines()[0]
        schema["fields"] = [_field(each, shapes[each.name]) for each in _fields(kind)]
        made += [_dump_record(kind, shapes), _load_record(kind, shapes)]
        return _Shape(schema, made[0], made[1])

    def _enum(self, kind: type[Enum], where: str) -> _Shape:
        is_by_value = all(isinstance(each.value, str) and _SYMBOL.fullmatch(each.value) for each in kind)
        symbols = {each: each.value if is_by_value else each.name for each in kind}
        members = {symbol: each for each, symbol in symbols.items()}
        name = kind.__name__
        schema: Any = {"type": "enum", "name": name, "symbols": list(members)}
        if kind in self._records:
            schema = name
        self._records[kind] = []
        return _Shape(schema, lambda value: symbols[kind(value)], lambda value: members[value])

    def _union(self, hints: tuple[Any, ...], where: str) -> _Shape:
        shapes = [self.of(each, where) for each in sorted(hints, key=lambda each: each is not type(None))]
        schema = [each.schema for each in shapes]
        others = [
            (hint, shape) for hint, shape in zip(sorted(hints, key=lambda each: each is not type(None)), shapes, strict=True)
        ]
        others = [(hint, shape) for hint, shape in others if hint is not type(None)]
        if len(others) == 1:
            dump, load = others[0][1].dump, others[0][1].load
            return _Shape(schema, _or_none(dump), _or_none(load))
        classes = [(hint, shape) for hint, shape in others if isinstance(hint, type)]
        if any(shape.load is not None for _, shape in others) and len(classes) != len(others):
            raise ConfigError(f"{where}: Avro cannot tell the members of this union apart; use classes and plain types only")

        def dump_member(value: Any) -> Any:
            for hint, shape in classes:
                if type(value) is hint:
                    if is_class(hint):
                        return (_full_name(hint), shape.dump(value)) if shape.dump else value
                    return value if shape.dump is None else shape.dump(value)
            return value

        def load_member(value: Any) -> Any:
            for hint, shape in classes:
                if (
                    is_class(hint)
                    and isinstance(value, dict)
                    and shape.load
                    and {each.name for each in _fields(hint)} == set(value)
                ):
                    return shape.load(value)
            return value

        return _Shape(schema, dump_member, load_member)


def _full_name(kind: type) -> str:
    namespace = getattr(kind, NAMESPACE, "")
    return f"{namespace}.{kind.__name__}" if namespace else kind.__name__


def _unfit(hint: Any, where: str) -> ConfigError:
    return ConfigError(
        f"{where}: Avro has no type for {hint!r}: use str, int, float, bool, bytes, datetime, date, time, Decimal, UUID, "
        "enums, lists, dicts with str keys, unions, and other dataclasses or models"
    )


def _fields(kind: type) -> list[_FieldOf]:
    if dataclasses.is_dataclass(kind):
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except NameError as problem:
            raise ConfigError(f"{kind.__qualname__}: a field's type is not known ({problem}): define it at the top") from None
        found = []
        for each in dataclasses.fields(kind):
            default = each.default if each.default is not dataclasses.MISSING else _NO_DEFAULT
            if each.default_factory is not dataclasses.MISSING:
                default = each.default_factory()
            found.append(_FieldOf(each.name, hints[each.name], default))
        return found
    model: Any = kind
    found = []
    for name, info in model.model_fields.items():
        default = _NO_DEFAULT if info.is_required() else info.get_default(call_default_factory=True)
        found.append(_FieldOf(name, info.annotation, default))
    return found


def _field(each: _FieldOf, shape: _Shape) -> dict[str, Any]:
    schema = shape.schema
    made: dict[str, Any] = {"name": each.name, "type": schema}
    if each.default is _NO_DEFAULT:
        return made
    default = each.default
    if default is not None and shape.dump is not None:
        default = shape.dump(default)
    if isinstance(schema, list):  # the default of a union belongs to its first branch
        first = "null" if default is None else _branch_of(default, schema)
        if first is None:
            return made
        made["type"] = [first, *(branch for branch in schema if branch != first)]
    if isinstance(default, bytes):
        default = default.decode("latin-1")
    if isinstance(default, str | int | float | bool | None) or default in ([], {}):
        made["default"] = default
    return made


def _branch_of(default: Any, branches: list[Any]) -> Any:
    wanted = {bool: "boolean", str: "string", int: "long", float: "double", bytes: "bytes"}.get(type(default))
    if wanted in branches:
        return wanted
    return next(
        (each for each in branches if isinstance(each, dict) and each.get("type") == "enum" and default in each["symbols"]),
        None,
    )


def _dump_record(kind: type, shapes: Mapping[str, _Shape]) -> Convert:
    """A function that makes a dict of an object, written for this class: a loop over fields takes three times as long."""
    converters = {f"convert_{name}": shape.dump for name, shape in shapes.items() if shape.dump is not None}
    parts = [
        f"{name!r}: convert_{name}(value.{name})" if shape.dump is not None else f"{name!r}: value.{name}"
        for name, shape in shapes.items()
    ]
    made: Convert = eval(f"lambda value: {{{', '.join(parts)}}}", converters)  # names are identifiers: fields of a class
    return made


def _load_record(kind: type, shapes: Mapping[str, _Shape]) -> Convert:
    converters = [(name, shape.load) for name, shape in shapes.items() if shape.load is not None]
    names = frozenset(shapes)
    if _is_pydantic(kind):
        model: Any = kind

        def load_model(value: dict[str, Any]) -> Any:
            for name, convert in converters:
                if name in value:
                    value[name] = convert(value[name])
            return model.model_validate(value)

        return load_model

    def load(value: dict[str, Any]) -> Any:
        for name, convert in converters:
            if name in value:
                value[name] = convert(value[name])
        return kind(**value) if value.keys() <= names else kind(**{name: value[name] for name in value.keys() & names})

    return load


def _or_none(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _of_items(convert: Convert | None, make: type) -> Convert | None:
    if convert is None:
        return None if make is list else make
    return lambda value: make([convert(each) for each in value])


def _of_values(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: {name: convert(each) for name, each in value.items()}


# JSON Schema


_JSON_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    UUID: {"type": "string", "format": "uuid"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    Decimal: {"type": "string"},
    timedelta: {"type": "number"},
    Any: {},
    dict: {"type": "object"},
    list: {"type": "array"},
}


def json_schema_of(kind: type) -> dict[str, Any]:
    """The JSON schema of what `json_of(kind)` writes. A field that JSON cannot hold is a `ConfigError`."""
    if _is_pydantic(kind):
        model: Any = kind
        found: dict[str, Any] = model.model_json_schema(mode="serialization")
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
    definitions: dict[str, Any] = {}
    top = _json_type(kind, kind.__qualname__, definitions)
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": kind.__name__,
        **definitions.pop(kind.__name__, top),
    }
    if definitions or f"#/definitions/{kind.__name__}" in json.dumps(schema):
        schema["definitions"] = definitions
    text = json.dumps(schema).replace(f'"#/definitions/{kind.__name__}"', '"#"')
    whole: dict[str, Any] = json.loads(text)
    return whole


def _json_type(hint: Any, where: str, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(hint, typing.NewType):
        return _json_type(hint.__supertype__, where, definitions)
    if typing.get_origin(hint) is typing.Annotated:
        return _json_type(typing.get_args(hint)[0], where, definitions)
    if hint is None or hint in _JSON_SCALARS:
        return dict(_JSON_SCALARS[type(None) if hint is None else hint])
    if is_class(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__].update(_json_object(hint, definitions))
        return {"$ref": f"#/definitions/{hint.__name__}"}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_json_type(each, where, definitions) for each in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _json_type(arguments[1], where, definitions) if arguments else True}
    if isinstance(origin, type) and issubclass(origin, tuple) and arguments and arguments[-1] is not Ellipsis:
        items = [_json_type(each, where, definitions) for each in arguments]
        return {"type": "array", "items": items, "minItems": len(items), "maxItems": len(items)}
    if isinstance(origin, type) and issubclass(origin, Sequence | Set):
        return {"type": "array", "items": _json_type(arguments[0], where, definitions) if arguments else True}
    raise ConfigError(f"{where}: JSON has no form for {hint!r}")


def _json_object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    properties, required = {}, []
    for each in _fields(kind):
        own = _json_type(each.hint, f"{kind.__qualname__}.{each.name}", definitions)
        if each.default is _NO_DEFAULT:
            required.append(each.name)
        elif (
            isinstance(each.default, str | int | float | bool | None)
            and not isinstance(each.default, Enum)
            and "$ref" not in own
        ):
            own["default"] = each.default
        properties[each.name] = own
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return found | ({"required": required} if required else {})
