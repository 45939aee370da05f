"""Avro to columns with fastavro, also with the five bytes that Confluent's serializers write before the data.

fastavro makes a Python object for each record: it is the one decoder here that does. Registries come in through a function of a
schema id; this file knows no protocol of any.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

from pyspark.sql import functions as F

from ottla.spark.decoding.arrow_functions import arrow_function
from ottla.spark.decoding.avro_types import AvroType, avro_type, parsed_avro, plain_schema
from ottla.spark.errors import SparkOptionError

PREFIX_BYTES = 5
MAGIC = b"\x00"

Registry = Callable[[int], Any]


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
        """By schema id, what the writer's schema has and the reader's has not."""

    def decode(self, column: Any) -> Any:
        """A struct array with `decoded`, `reason` and `unknown` fields; a null stays null."""
        import pyarrow as pa

        values, reasons, unknown = [], [], []
        for raw in column.to_pylist():
            value = reason = drift = None
            if raw is not None:
                try:
                    value = self._one(raw)
                    if self._registry is not None:
                        drift = self._unknown.get(int.from_bytes(raw[1:PREFIX_BYTES], "big"))
                except UnreadableAvro as problem:
                    reason = str(problem)
            values.append(value)
            reasons.append(reason)
            unknown.append(drift)
        try:
            made = self._column(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            made = self._one_by_one(values, reasons)
        arrays = [made, pa.array(reasons, pa.string()), pa.array(unknown, pa.string())]
        return pa.StructArray.from_arrays(arrays, names=["decoded", "reason", "unknown"])

    def _one(self, raw: bytes) -> Any:
        start, writer = 0, None
        if self._has_prefix:
            if len(raw) < PREFIX_BYTES or raw[:1] != MAGIC:
                raise UnreadableAvro("does not begin with a zero byte and a schema id, as Confluent's serializers write")
            start = PREFIX_BYTES
            writer = self._writer(int.from_bytes(raw[1:PREFIX_BYTES], "big"))
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
        return self._writers[schema_id]

    def _one_by_one(self, values: list[Any], reasons: list[str | None]) -> Any:
        """Some value is too large for its column: find out which, so that the others are not lost with it."""
        import pyarrow as pa

        for number, value in enumerate(values):
            try:
                self._column([value])
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as problem:
                values[number], reasons[number] = None, f"does not fit its column type: {problem}"
        return self._column(values)

    def _column(self, values: list[Any]) -> Any:
        import pyarrow as pa

        # The cast can fail too: milliseconds far from today do not fit into a timestamp of microseconds.
        return pa.array(values, self._kind.read).cast(self._kind.made)


def changed_fields(writer: Any, reader: Any) -> str | None:
    """The fields of a writer's record that the reader's has not, or has with another type; None if there are none."""
    theirs, ours = _field_types(writer), _field_types(reader)
    found = [name if name not in ours else f"{name} as {kind}" for name, kind in theirs.items() if ours.get(name) != kind]
    return ", ".join(sorted(found)) or None


def _field_types(schema: Any) -> dict[str, str]:
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    return {each["name"]: _type_text(each["type"]) for each in fields}


def _type_text(kind: Any) -> str:
    """A type without names, defaults and documentation."""
    if isinstance(kind, list):
        return " or ".join(_type_text(each) for each in kind)
    if isinstance(kind, dict):
        return str(kind.get("logicalType") or (_type_text(kind["type"]) if kind.get("type") != "record" else "record"))
    return str(kind)


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
