"""Avro schemas as types of Spark and Arrow. Pure.

The types are those of Spark's own Avro reader: records are structs, enums strings, fixed and bytes binaries, a union with null
is nullable, [int, long] is a long and [float, double] a double. Dates, timestamps and decimals are read as such; other logical
types as the type below them. Unions of several other types and recursive records have no column type and are refused.

Timestamps are read as numbers and given their type by Arrow: no datetime object is made for each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
