"""Avro to columns with fastavro, also with the five bytes that Confluent's serializers write before the data.

The types are those of Spark's own Avro reader: records are structs, enums strings, fixed and bytes binaries, a union with null
is nullable, [int, long] is a long and [float, double] a double. Dates, timestamps and decimals are read as such; other logical
types as the type below them. Unions of several other types and recursive records have no column type and are refused.

fastavro makes a Python object for each record, but none for timestamps: they are read as numbers and get their type from Arrow.
Registries come in through a function of a schema id; this file knows no protocol of any.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from pyspark.sql import functions as F

from ottla.spark.decoding.plain import arrow_function
from ottla.spark.errors import SparkOptionError

PRIMITIVES = {
    "null": ("void", "null"),
    "boolean": ("boolean", "bool_"),
    "int": ("int", "int32"),
    "long": ("bigint", "int64"),
    "float": ("float", "float32"),
    "double": ("double", "float64"),
    "bytes": ("binary", "binary"),
    "string": ("string", "string"),
}
WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
TIMESTAMPS = {
    "timestamp-millis": ("timestamp", "ms", "UTC"),
    "timestamp-micros": ("timestamp", "us", "UTC"),
    "local-timestamp-millis": ("timestamp_ntz", "ms", None),
    "local-timestamp-micros": ("timestamp_ntz", "us", None),
}
DECIMAL_DIGITS_MAX = 38


@dataclass(frozen=True)
class AvroType:
    """One type, in three forms."""

    spark: str
    """As DDL."""
    read: Any
    """Arrow's type for what fastavro returns."""
    made: Any
    """Arrow's type for the column."""


def parsed_avro(schema: Any, where: str) -> Any:
    """A schema given as JSON text, dict or list, as Python values; `SparkOptionError` names the argument."""
    if isinstance(schema, str) and schema.strip()[:1] in ("{", "[", '"'):
        try:
            return json.loads(schema)
        except ValueError as problem:
            raise SparkOptionError(f"{where} is no JSON text: {problem}") from None
    if isinstance(schema, str | Mapping | list):
        return schema
    raise SparkOptionError(f"{where} must be an Avro schema as JSON text or dict, not {type(schema).__name__}")


def plain_schema(schema: Any) -> Any:
    """The schema without the logical types that fastavro would make objects of; decimals stay."""
    if isinstance(schema, list):
        return [plain_schema(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {name: value for name, value in schema.items() if name != "logicalType" or value == "decimal"}
    for name in ("type", "items", "values"):
        if name in kept:
            kept[name] = plain_schema(kept[name])
    if "fields" in kept:
        kept["fields"] = [plain_schema(field) for field in kept["fields"]]
    return kept


def avro_type(schema: Any) -> AvroType:
    """The types of a schema, or a `SparkOptionError` that names the part without one."""
    return _type_of(schema, {}, "", "", ())


def _type_of(schema: Any, named: dict[str, Any], namespace: str, path: str, inside: tuple[str, ...]) -> AvroType:
    import pyarrow as pa

    if isinstance(schema, list):
        return _union(schema, named, namespace, path, inside)
    if isinstance(schema, str):
        if schema in PRIMITIVES:
            spark, arrow = PRIMITIVES[schema]
            kind = getattr(pa, arrow)()
            return AvroType(spark, kind, kind)
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        found = full if full in named else schema
        if found in inside:
            raise SparkOptionError(
                f"the Avro schema is recursive: {path or found} contains {schema} again, which no column type can"
            )
        if found not in named:
            raise SparkOptionError(f"the Avro schema uses the type {schema} at {path or 'its top'}, which it does not define")
        return _type_of(named[found], named, namespace, path, inside)
    kind_name = schema.get("type")
    logical = schema.get("logicalType")
    if isinstance(kind_name, Mapping | list):
        return _type_of(kind_name, named, namespace, path, inside)
    if kind_name in ("record", "error", "enum", "fixed"):
        namespace = schema.get("namespace", namespace)
        name = schema.get("name", "")
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        named[full] = schema
        if kind_name == "enum":
            return AvroType("string", pa.string(), pa.string())
        if kind_name != "fixed":
            return _record(schema, named, namespace, path, (*inside, full))
    if logical == "decimal" and kind_name in ("bytes", "fixed"):
        return _decimal(schema, path)
    if kind_name == "fixed":
        return AvroType("binary", pa.binary(), pa.binary())
    if logical == "date" and kind_name == "int":
        return AvroType("date", pa.date32(), pa.date32())
    if logical in TIMESTAMPS and kind_name == "long":
        spark, unit, zone = TIMESTAMPS[logical]
        return AvroType(spark, pa.timestamp(unit, tz=zone), pa.timestamp("us", tz=zone))
    if kind_name == "array":
        each = _type_of(schema.get("items"), named, namespace, f"{path}[]", inside)
        return AvroType(f"array<{each.spark}>", pa.list_(each.read), pa.list_(each.made))
    if kind_name == "map":
        each = _type_of(schema.get("values"), named, namespace, f"{path}{{}}", inside)
        text = pa.string()
        return AvroType(f"map<string,{each.spark}>", pa.map_(text, each.read), pa.map_(text, each.made))
    if isinstance(kind_name, str):
        return _type_of(kind_name, named, namespace, path, inside)
    raise SparkOptionError(f"the Avro schema has no type at {path or 'its top'}: {json.dumps(schema, default=str)[:80]}")


def _record(schema: Any, named: dict[str, Any], namespace: str, path: str, inside: tuple[str, ...]) -> AvroType:
    import pyarrow as pa

    fields = []
    for field in schema.get("fields", ()):
        name = field["name"]
        fields.append((name, _type_of(field["type"], named, namespace, f"{path}.{name}".lstrip("."), inside)))
    if not fields:
        raise SparkOptionError(f"the Avro record {schema.get('name')} has no fields, which no column type can")
    spark = ",".join(f"`{name}`:{each.spark}" for name, each in fields)
    read = pa.struct([(name, each.read) for name, each in fields])
    return AvroType(f"struct<{spark}>", read, pa.struct([(name, each.made) for name, each in fields]))


def _union(schema: list[Any], named: dict[str, Any], namespace: str, path: str, inside: tuple[str, ...]) -> AvroType:
    kinds = [each for each in schema if each != "null"]
    if len(kinds) == 1:
        return _type_of(kinds[0], named, namespace, path, inside)
    names = [each if isinstance(each, str) else each.get("type") for each in kinds]
    wider = WIDER.get(frozenset(names)) if all(isinstance(each, str) for each in kinds) else None
    if wider is None:
        shown = ", ".join(map(str, names)) or "null alone"
        raise SparkOptionError(f"the Avro union of {shown} at {path or 'its top'} has no column type: read it as bytes")
    return _type_of(wider, named, namespace, path, inside)


def _decimal(schema: Mapping[str, Any], path: str) -> AvroType:
    import pyarrow as pa

    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not 0 < precision <= DECIMAL_DIGITS_MAX or not 0 <= scale <= precision:
        raise SparkOptionError(
            f"the Avro decimal at {path or 'its top'} has precision {precision} and scale {scale}: Spark has up to 38"
        )
    kind = pa.decimal128(precision, scale)
    return AvroType(f"decimal({precision},{scale})", kind, kind)


PREFIX_BYTES = 5
MAGIC = b"\x00"

UNITS = ("millis", "micros", "nanos")
"""The ends of the names of logical types that are numbers of these."""

Registry = Callable[[int], Any]
Named = dict[str, Any]


class AvroReader:
    """Decodes the values of one column, in a Python worker. Writers' schemas are kept by id."""

    def __init__(self, schema: Any, kind: AvroType, has_prefix: bool, registry: Registry | None) -> None:
        import fastavro

        self._fastavro = fastavro
        self._reader_schema = fastavro.parse_schema(plain_schema(schema))
        self._schema = schema
        self._kind = kind
        self._has_prefix = has_prefix
        self._registry = registry
        self._writers: dict[int, Any] = {}
        self._unknown: dict[int, str | None] = {}
        """By schema id, how the writer's schema differs from the reader's."""
        self._refused: dict[int, str] = {}
        """By schema id, why its records would be read as something else."""

    def decode(self, column: Any) -> Any:
        """A struct array with `decoded`, `reason` and `unknown` fields; a null stays null."""
        import pyarrow as pa

        values, reasons, unknown = [], [], []
        for raw in column.to_pylist():
            value = reason = drift = None
            if raw is not None:
                try:
                    value = self._one(raw)
                    if self._registry is not None and self._has_prefix:
                        drift = self._unknown.get(int.from_bytes(raw[1:PREFIX_BYTES], "big"))
                except UnreadableAvro as problem:
                    reason = str(problem)
            values.append(value)
            reasons.append(reason)
            unknown.append(drift)
        made = made_column(self._kind, values, reasons)
        arrays = [made, pa.array(reasons, pa.string()), pa.array(unknown, pa.string())]
        return pa.StructArray.from_arrays(arrays, names=["decoded", "reason", "unknown"])

    def _one(self, raw: bytes) -> Any:
        start, writer = 0, None
        if self._has_prefix:
            if len(raw) < PREFIX_BYTES or raw[:1] != MAGIC:
                raise UnreadableAvro("does not begin with a zero byte and a schema id, as Confluent's serializers write")
            start = PREFIX_BYTES
            writer = self._writer(int.from_bytes(raw[1:PREFIX_BYTES], "big"))
        changes = self._unknown.get(int.from_bytes(raw[1:PREFIX_BYTES], "big")) if writer is not None else None
        return self.read(raw, start, writer, changes)

    def read(self, raw: bytes, start: int, writer: Any, changes: str | None = None) -> Any:
        """One value, written with the parsed schema `writer` (None: with the reader's), which differs by `changes`."""
        stream = BytesIO(raw)
        stream.seek(start)
        try:
            if writer is None:
                value = self._fastavro.schemaless_reader(stream, self._reader_schema, None)
            else:
                value = self._fastavro.schemaless_reader(stream, writer, self._reader_schema)
        except EOFError:
            raise UnreadableAvro(f"ends too early: {len(raw)} bytes do not hold the schema's fields") from None
        except Exception as problem:  # fastavro raises what Python does: IndexError, UnicodeDecodeError, struct.error, …
            if changes is not None:
                raise UnreadableAvro(f"does not fit the Avro schema, because its writer's differs ({changes})") from None
            raise UnreadableAvro(f"does not fit the Avro schema: {problem or type(problem).__name__}") from None
        rest = len(raw) - stream.tell()
        if rest:
            raise UnreadableAvro(f"does not fit the Avro schema: {rest} bytes are left after its last field")
        return value

    def _writer(self, schema_id: int) -> Any:
        if self._registry is None:
            return None
        if schema_id not in self._writers:
            try:
                found = self._registry(schema_id)
            except LookupError as problem:
                raise UnreadableAvro(f"has the schema id {schema_id}, which the registry does not know: {problem}") from None
            parsed = parsed_avro(found, f"the registry's schema {schema_id}")
            self._writers[schema_id] = self._fastavro.parse_schema(plain_schema(parsed))
            self._unknown[schema_id] = changed_fields(parsed, self._schema)
            if (units := ", ".join(_other_units(parsed, self._schema))) != "":
                self._refused[schema_id] = f"would be read with other times, because its writer's schema differs ({units})"
        if schema_id in self._refused:
            raise UnreadableAvro(self._refused[schema_id])
        return self._writers[schema_id]


def made_column(kind: AvroType, values: list[Any], reasons: list[str | None]) -> Any:
    """The values as a column. One that does not fit becomes null, with a reason, so that the others are not lost with it."""
    import pyarrow as pa

    def column(of: list[Any]) -> Any:
        # The cast can fail too: milliseconds far from today do not fit into a timestamp of microseconds.
        return pa.array(of, kind.read).cast(kind.made)

    try:
        return column(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        for number, value in enumerate(values):
            try:
                column([value])
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as problem:
                values[number], reasons[number] = None, f"does not fit its column type: {problem}"
        return column(values)


def changed_fields(writer: Any, reader: Any) -> str | None:
    """How a writer's record differs from the reader's, with ", " between; None if it does not."""
    return ", ".join(avro_changes(writer, reader)) or None


def avro_changes(writer: Any, reader: Any) -> list[str]:
    """How a writer's record differs from the reader's, one text for each field."""
    return sorted(_changes(writer, reader, _named(writer), _named(reader), ""))


def _changes(writer: Any, reader: Any, theirs: Named, ours: Named, path: str) -> Iterator[str]:
    """The changes of the fields of a record, and of records in it."""
    written, read = _fields(writer), _fields(reader)
    aliases = {alias: name for name, each in read.items() for alias in each.get("aliases", ())}
    found = {aliases.get(name, name) if name not in read else name: each["type"] for name, each in written.items()}
    for name, kind in found.items():
        if name not in read:
            yield f"{path}{name} is new"
            continue
        their, our = _resolved(kind, theirs), _resolved(read[name]["type"], ours)
        before, now = _type_text(our, ours), _type_text(their, theirs)
        if before != now:
            yield f"{path}{name} is {now} instead of {before}"
        their, our = _inner(their, theirs), _inner(our, ours)
        if _fields(their) and _fields(our):
            yield from _changes(their, our, theirs, ours, f"{path}{name}.")
        elif isinstance(their, dict) and isinstance(our, dict) and their.get("type") == our.get("type") == "enum":
            symbols = [each for each in their["symbols"] if each not in our["symbols"]]
            if symbols:
                yield f"{path}{name} has the new symbol{'s' if len(symbols) > 1 else ''} {' and '.join(symbols)}"
    for name in read:
        if name not in found:
            yield f"{path}{name} is gone"


def _other_units(writer: Any, reader: Any) -> Iterator[str]:
    """Fields whose numbers mean another time: Avro reads them as they are."""
    theirs, ours = _named(writer), _named(reader)
    read = _fields(reader)
    for name, each in _fields(writer).items():
        if name in read:
            now, before = (_inner(kind, named) for kind, named in ((each["type"], theirs), (read[name]["type"], ours)))
            units = [
                str(kind.get("logicalType") if isinstance(kind, dict) else "").rpartition("-")[2] for kind in (now, before)
            ]
            if units[0] != units[1] and all(unit in UNITS for unit in units):
                yield f"{name} is {now['logicalType']} instead of {before['logicalType']}"


def _named(schema: Any) -> Named:
    """The types that a schema defines, by their names with and without namespace."""
    found: Named = {}

    def look(kind: Any) -> None:
        if isinstance(kind, list):
            for each in kind:
                look(each)
        elif isinstance(kind, dict):
            if isinstance(name := kind.get("name"), str) and kind.get("type") in ("record", "error", "enum", "fixed"):
                found[name] = found[name.rpartition(".")[2]] = kind
                if "." not in name and kind.get("namespace"):
                    found[f"{kind['namespace']}.{name}"] = kind
            for each in (kind.get("type"), kind.get("items"), kind.get("values"), *(f["type"] for f in kind.get("fields", ()))):
                look(each)

    look(schema)
    return found


def _resolved(kind: Any, named: Named) -> Any:
    if isinstance(kind, dict) and isinstance(kind.get("type"), dict | list):
        return _resolved(kind["type"], named)
    if isinstance(kind, str):
        return named.get(kind) or named.get(kind.rpartition(".")[2], kind)
    return kind


def _inner(kind: Any, named: Named) -> Any:
    """The type itself of one that may be null."""
    kind = _resolved(kind, named)
    if isinstance(kind, list):
        rest = [each for each in kind if each != "null"]
        return _resolved(rest[0], named) if len(rest) == 1 else kind
    return kind


def _fields(schema: Any) -> dict[str, Any]:
    return {each["name"]: each for each in schema.get("fields", ())} if isinstance(schema, dict) else {}


def _type_text(kind: Any, named: Named) -> str:
    """A type without names, defaults and documentation."""
    kind = _resolved(kind, named)
    if isinstance(kind, list):
        return " or ".join(sorted((_type_text(each, named) for each in kind), key=lambda each: each != "null"))
    if not isinstance(kind, dict):
        return str(kind)
    if kind.get("logicalType"):
        return str(kind["logicalType"])
    if kind.get("type") in ("array", "map"):
        return f"{kind['type']} of {_type_text(kind.get('items', kind.get('values')), named)}"
    return str(kind.get("type"))


class UnreadableAvro(Exception):
    """A record that cannot be decoded; the text continues "the value …"."""


class AvroDecoder:
    """An Avro record, or another Avro type, to a column."""

    def __init__(self, side: str, schema: Any, *, has_prefix: bool, registry: Registry | None) -> None:
        try:
            import fastavro
        except ImportError:
            raise SparkOptionError("Avro needs the package fastavro: pip install 'ottla[spark]'") from None
        self._side = side
        self._schema = parsed_avro(schema, "schema" if side == "value" else "key_schema")
        self._kind = avro_type(self._schema)
        self._has_prefix = has_prefix
        self._registry = registry
        try:
            fastavro.parse_schema(plain_schema(self._schema))
        except Exception as problem:  # SchemaParseException, UnknownType and others have no common class
            raise SparkOptionError(f"the schema of the {side} is no Avro schema: {problem}") from None

    def stage(self, source: Any) -> Any:
        """The value, and the reason if there is none."""
        schema, kind, has_prefix, registry = self._schema, self._kind, self._has_prefix, self._registry
        readers: list[AvroReader] = []

        def decode(column: Any) -> Any:
            if not readers:  # made in the worker, once for all batches of a task
                readers.append(AvroReader(schema, kind, has_prefix, registry))
            return readers[0].decode(column)

        return arrow_function(decode, f"struct<decoded:{kind.spark},reason:string,unknown:string>")(source)

    def value(self, staged: Any, source: Any) -> Any:
        """The decoded value."""
        return staged["decoded"]

    def reason(self, staged: Any, source: Any) -> Any:
        """Why the bytes are no value of the schema."""
        return F.concat(F.lit(f"the {self._side} "), staged["reason"])

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """What the writer's schema has and ours has not. Without a registry there is no writer's schema to compare with."""
        return staged["unknown"] if self._registry is not None else None

    def fields(self, staged: Any) -> dict[str, Any]:
        """The fields of a record."""
        return {name: staged["decoded"][name] for name in _fields(self._schema)}
