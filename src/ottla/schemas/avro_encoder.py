"""Avro encoders, each a Python function that is written for one schema. They are several times as fast as a writer that walks
the schema for every value, even a compiled one.

An encoder either returns the bytes that fastavro's writer makes, or raises: then the value is left to fastavro, which does what
is unusual (defaults for missing fields, subclasses, conversions) and says what is wrong. Schemas with unions of several types
besides null have no encoder.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from fastavro.write import LOGICAL_WRITERS

Encode = Callable[[Any], bytes]

INT_MAX, LONG_MAX = 1 << 31, 1 << 63
_CACHED_MAX = 4_096
_CHUNK = (1 << 14) - 1
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class Unfit(Exception):
    """A value that the encoder leaves to fastavro."""


class Unsupported(Exception):
    """A schema that has no encoder."""


class _Longs(dict[int, bytes]):
    """Whole numbers as Avro writes them: zigzag, seven bits a byte. Small ones are kept, others made of two bytes at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._ends = [bytes([each] if each < 0x80 else [each & 0x7F | 0x80, each >> 7]) for each in range(_CHUNK + 1)]
        self._chunks = [bytes([each & 0x7F | 0x80, each >> 7 | 0x80]) for each in range(_CHUNK + 1)]

    def __missing__(self, number: int) -> bytes:
        if not -LONG_MAX <= number < LONG_MAX:
            raise Unfit
        rest, found = (number << 1) ^ (number >> 63), b""
        while rest > _CHUNK:
            found += self._chunks[rest & _CHUNK]
            rest >>= 14
        found += self._ends[rest]
        if -_CACHED_MAX <= number < _CACHED_MAX:
            self[number] = found
        return found


_LONGS = _Longs()
_NAMES: dict[str, Any] = {
    "LONG": _LONGS,
    "Unfit": Unfit,
    "pack_float": struct.Struct("<f").pack,
    "pack_double": struct.Struct("<d").pack,
    "join": b"".join,
}


def encoder_of(parsed: Any, named: Mapping[str, Any]) -> Encode | None:
    """The encoder of a schema that fastavro has parsed, with the named types that it knows. None if it has none."""
    try:
        return _Writer(named).encoder(parsed)
    except Unsupported:
        return None


class _Writer:
    """Writes the functions of one schema: one for each record, and for each array or map one statement in it."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = dict(named)
        self._names = dict(_NAMES)
        self._records: dict[str, str] = {}
        self._used_by_name: set[str] = set()
        self._count = 0

    def encoder(self, parsed: Any) -> Encode:
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise Unsupported  # a single value of a primitive type: fastavro is as fast
        self._find_uses(parsed)
        name = self._record(parsed)
        made: Encode = self._names[name]
        return made

    def _find_uses(self, schema: Any) -> None:
        """Records that are used by name get a function: they may contain themselves. Others are written in place."""
        if isinstance(schema, str):
            self._used_by_name.add(schema)
        elif isinstance(schema, list):
            for each in schema:
                self._find_uses(each)
        else:
            for part in ("type", "items", "values"):
                if part in schema:
                    self._find_uses(schema[part])
            for each in schema.get("fields", ()):
                self._find_uses(each["type"])

    def _new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _constant(self, value: Any) -> str:
        name = self._new("constant")
        self._names[name] = value
        return name

    def _record(self, schema: Mapping[str, Any]) -> str:
        name = self._records[schema["name"]] = self._new("record")
        self._named[schema["name"]] = schema
        lines = [f"def {name}(value):"]
        parts = self._fields(schema, "value", lines, 1)
        lines.append(f" return join(({''.join(f'{each}, ' for each in parts)}))")
        exec("\n".join(lines), self._names)  # only names of our own and quoted names of fields
        return name

    def _fields(self, schema: Mapping[str, Any], variable: str, lines: list[str], depth: int) -> list[str]:
        self._add(lines, depth, f"if type({variable}) is not dict: raise Unfit")
        parts: list[str] = []
        for field in schema["fields"]:
            own = self._new("v")
            self._add(lines, depth, f"{own} = {variable}[{field['name']!r}]")
            parts += self._value(field["type"], own, lines, depth)
        return parts

    def _value(self, schema: Any, variable: str, lines: list[str], depth: int) -> list[str]:
        """Add statements that check a variable, and return the expressions of its bytes."""
        if isinstance(schema, list):
            return self._union(schema, variable, lines, depth)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(schema, dict) and "logicalType" in schema:
            prepare = LOGICAL_WRITERS.get(f"{kind}-{schema['logicalType']}")
            if prepare is not None:
                own = self._new("v")
                self._add(lines, depth, f"{own} = {self._constant(prepare)}({variable}, {self._constant(schema)})")
                variable = own
        if kind in _PRIMITIVES:
            return self._primitive(kind, variable, lines, depth)
        if kind == "enum":
            symbols = {each: _LONGS[number] for number, each in enumerate(schema["symbols"])}
            return [f"{self._constant(symbols)}[{variable}]"]
        if kind == "fixed":
            self._add(lines, depth, f"if type({variable}) is not bytes or len({variable}) != {schema['size']}: raise Unfit")
            return [variable]
        if kind == "record" and schema["name"] not in self._used_by_name:
            return self._fields(schema, variable, lines, depth)
        if kind == "record":
            return [f"{self._record(schema)}({variable})"]
        if kind in ("array", "map"):
            return [self._many(kind, schema, variable, lines, depth)]
        if kind in self._records:
            return [f"{self._records[kind]}({variable})"]
        if kind in self._named:
            return self._value(self._named[kind], variable, lines, depth)
        raise Unsupported

    def _add(self, lines: list[str], depth: int, line: str) -> None:
        lines.append(" " * depth + line)

    def _primitive(self, kind: str, variable: str, lines: list[str], depth: int) -> list[str]:
        match kind:
            case "null":
                self._add(lines, depth, f"if {variable} is not None: raise Unfit")
                return []
            case "boolean":
                self._add(lines, depth, f"if type({variable}) is not bool: raise Unfit")
                return [f'(b"\\1" if {variable} else b"\\0")']
            case "int":
                bounds = f"-{INT_MAX} <= {variable} < {INT_MAX}"
                self._add(lines, depth, f"if type({variable}) is not int or not {bounds}: raise Unfit")
                return [f"LONG[{variable}]"]
            case "long":
                self._add(lines, depth, f"if type({variable}) is not int: raise Unfit")
                return [f"LONG[{variable}]"]
            case "float" | "double":
                self._add(lines, depth, f"if type({variable}) is not float and type({variable}) is not int: raise Unfit")
                return [f"pack_{kind}({variable})"]
            case "bytes":
                self._add(lines, depth, f"if type({variable}) is not bytes: raise Unfit")
                return [f"LONG[len({variable})]", variable]
        encoded = self._new("s")
        self._add(lines, depth, f"if type({variable}) is not str: raise Unfit")
        self._add(lines, depth, f"{encoded} = {variable}.encode()")
        return [f"LONG[len({encoded})]", encoded]

    def _union(self, branches: list[Any], variable: str, lines: list[str], depth: int) -> list[str]:
        others = [(number, each) for number, each in enumerate(branches) if each != "null"]
        if len(others) != 1 or len(branches) != 2:
            raise Unsupported
        (number, other), made = others[0], self._new("u")
        self._add(lines, depth, f"if {variable} is None: {made} = {_LONGS[1 - number]!r}")
        self._add(lines, depth, "else:")
        parts = self._value(other, variable, lines, depth + 1)
        self._add(lines, depth + 1, f"{made} = {' + '.join([repr(_LONGS[number]), *parts])}")
        return [made]

    def _many(self, kind: str, schema: Mapping[str, Any], variable: str, lines: list[str], depth: int) -> str:
        """An array or a map: the count, the items, and a zero, in one block."""
        made, item, key = self._new("m"), self._new("i"), self._new("k")
        self._add(lines, depth, f"if type({variable}) is not {'list' if kind == 'array' else 'dict'}: raise Unfit")
        self._add(lines, depth, f"if {variable}:")
        self._add(lines, depth + 1, f"{made} = [LONG[len({variable})]]")
        if kind == "array":
            self._add(lines, depth + 1, f"for {item} in {variable}:")
            parts: list[str] = []
        else:
            self._add(lines, depth + 1, f"for {key}, {item} in {variable}.items():")
            parts = self._primitive("string", key, lines, depth + 2)
        parts += self._value(schema["items" if kind == "array" else "values"], item, lines, depth + 2)
        if len(parts) == 1:
            self._add(lines, depth + 2, f"{made}.append({parts[0]})")
        elif parts:
            self._add(lines, depth + 2, f"{made} += ({', '.join(parts)})")
        self._add(lines, depth + 1, f'{made}.append(b"\\0")')
        self._add(lines, depth + 1, f"{made} = join({made})")
        self._add(lines, depth, f'else: {made} = b"\\0"')
        return made
