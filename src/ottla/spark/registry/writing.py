"""Columns as keys and values with schemas of a registry: what the sink's tasks encode before they send.

With `schema.register=register` the schema follows from the column's type: an Avro record, or a JSON object, whose fields are
all optional, as columns are. It is registered when the first rows are written, and refused by the registry if it is not
compatible. With `latest` rows are written with the subject's newest schema; a column that it does not have is refused, not left
out. The numbers of Protobuf's fields cannot follow from columns, so that format needs `latest`.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from ottla.errors import SerializationError
from ottla.schemas import AvroSerializer, RegisteredSchema, Schema
from ottla.schemas.framing import prefix, write_indexes
from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.registry.languages import language_of, proto_message
from ottla.spark.registry.options import LATEST, RegistryOptions, SideOptions, client_of
from ottla.spark.registry.reading import registry_errors

Encode = Callable[[Any], bytes]
"""One value, a Python object, as bytes with the id of its schema. Raises ValueError, TypeError or KeyError."""


def check_columns(options: RegistryOptions, schema: Any) -> None:
    """Refuse columns that no schema can describe, before the query starts."""
    from pyspark.sql.pandas.types import to_arrow_type

    for side in options.sides:
        for field in schema:
            if field.name == side.side:
                if side.kind == "PROTOBUF" and options.register != LATEST:
                    raise SparkOptionError(
                        f"{side.side}.format=protobuf needs schema.register=latest: the numbers of fields do not follow from "
                        f"columns. Register the .proto file: ottla schemas register {side.subject or 'TOPIC-' + side.side} FILE"
                    )
                if options.register != LATEST:
                    derived_schema(side, "topic", to_arrow_type(field.dataType, timezone="UTC"))


class Encoder:
    """Encodes keys and values in a worker; one for each set of options. Schemas are kept by topic and type."""

    def __init__(self, options: RegistryOptions) -> None:
        self._options = options
        self._found: dict[tuple[str, str, Any], Encode] = {}

    def encoded(self, topic: str, rows: pa.RecordBatch, named: Callable[[int], str]) -> pa.RecordBatch:
        """The rows with binary keys and values. `named` names a row for an error."""
        for side in self._options.sides:
            if side.side not in rows.schema.names:
                continue
            at = rows.schema.get_field_index(side.side)
            column = rows.column(at)
            encode = self._encode_of(side, topic, column.type)
            values: list[bytes | None] = []
            for row, value in enumerate(column.to_pylist(maps_as_pydicts="strict")):
                try:
                    values.append(None if value is None else encode(value))
                except (ValueError, TypeError, KeyError, AttributeError, OverflowError, SerializationError) as problem:
                    raise SinkError(
                        f"{named(row)} does not fit the schema of subject {side.subject_of(topic)}: {_told(problem)}"
                    ) from None
            rows = rows.set_column(at, pa.field(side.side, pa.binary()), pa.array(values, pa.binary()))
        return rows

    def _encode_of(self, side: SideOptions, topic: str, kind: Any) -> Encode:
        key = (side.side, topic, kind)
        found = self._found.get(key)
        if found is None:
            subject = side.subject_of(topic)
            with registry_errors(SinkError, f"the {side.side}s of {topic} have no schema (subject {subject})"):
                if self._options.register == LATEST:
                    registered = client_of(side.address).latest(subject)
                    if registered.schema.kind != side.kind:
                        right = f"{side.side}.format={registered.schema.kind.lower()}"
                        raise SinkError(f"subject {subject} has schemas of type {registered.schema.kind}: write {right}")
                else:
                    registered = client_of(side.address).register(subject, derived_schema(side, topic, kind))
                found = self._found[key] = _encode(side, registered, subject, kind, self._options.register != LATEST)
        return found


def _told(problem: Exception) -> str:
    if isinstance(problem, KeyError):
        return f"{problem} is missing"
    return re.sub(r"^the value does not fit its \w+ schema: ", "", str(problem)) or type(problem).__name__


def _encode(side: SideOptions, registered: RegisteredSchema, subject: str, kind: Any, is_derived: bool) -> Encode:
    front, schema, registry = prefix(registered.id), registered.schema, client_of(side.address)
    if side.kind == "JSON":
        return _json(front, side, registered, is_derived)
    if not is_derived:
        found = language_of(side.kind, registry, [schema], side.message).type.read
        if others := list(_others(kind, found, "")):
            raise SinkError(
                f"the schema of subject {subject} has no field {', '.join(others)}: leave the column out, or register a schema "
                "that has it"
            )
    if side.kind == "PROTOBUF":
        return _protobuf(front, proto_message(registry, schema, side.message))
    # Brings an encoder that is generated for the schema.
    serializer = AvroSerializer(registry, schema, use_id=registered.id)
    return lambda value: serializer.serialize(subject, [], value)


def _others(columns: Any, schema: Any, path: str) -> Iterator[str]:
    """The columns that a schema does not have: they would be left out in silence."""
    if pa.types.is_struct(columns) and pa.types.is_struct(schema):
        for field in columns:
            name = f"{path}{field.name}"
            at = schema.get_field_index(field.name)
            if at < 0:
                yield name
            else:
                yield from _others(field.type, schema.field(at).type, f"{name}.")
    elif pa.types.is_list(columns) and pa.types.is_list(schema):
        yield from _others(columns.value_type, schema.value_type, path)
    elif pa.types.is_map(columns) and pa.types.is_map(schema):
        yield from _others(columns.item_type, schema.item_type, path)


def _json(front: bytes, side: SideOptions, registered: RegisteredSchema, is_derived: bool) -> Encode:
    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_json_value)

    if is_derived:
        return lambda value: front + text(value).encode()
    from ottla.schemas import JsonSchemaSerializer

    # Checks each value. Null columns are left out: few schemas allow null.
    serializer = JsonSchemaSerializer(client_of(side.address), use_id=registered.id)
    return lambda value: serializer.serialize("", [], json.loads(text(_without_nulls(value))))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        import base64

        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _protobuf(front: bytes, message: Any) -> Encode:
    from google.protobuf import message_factory
    from google.protobuf.json_format import ParseDict, ParseError

    from ottla.schemas.protobuf import indexes_of

    made, start = message_factory.GetMessageClass(message), front + write_indexes(indexes_of(message))

    def write(value: Any) -> bytes:
        found = made()
        try:
            ParseDict(_proto_json(value), found)
        except ParseError as problem:
            raise ValueError(str(problem)) from None
        data: bytes = start + found.SerializeToString()
        return data

    return write


def _proto_json(value: Any) -> Any:
    """A value as Protobuf's JSON mapping takes it."""
    if isinstance(value, dict):
        return {name: _proto_json(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_proto_json(each) for each in value]
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
    return _json_value(value) if isinstance(value, bytes | decimal.Decimal | datetime.date) else value


# Schemas of columns


def derived_schema(side: SideOptions, topic: str, kind: Any) -> Schema:
    """The schema that follows from a column's type."""
    name = re.sub(r"\W", "_", f"{topic}_{side.side}")
    name = f"_{name}" if name[0].isdigit() else name
    if side.kind == "JSON":
        made = _json_schema(kind, side.side)
        return Schema(json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "title": name, **made}), "JSON")
    return Schema(json.dumps(_avro_schema(kind, name, side.side)))


def _refused(path: str, kind: Any, form: str) -> SparkOptionError:
    return SparkOptionError(f"the column {path} is {kind}, which {form} does not have: cast it, to a string for example")


_AVRO: dict[str, Any] = {
    "int8": "int", "int16": "int", "int32": "int", "int64": "long", "float": "float", "double": "double", "bool": "boolean",
    "string": "string", "large_string": "string", "binary": "bytes", "large_binary": "bytes",
    "date32[day]": {"type": "int", "logicalType": "date"},
}  # fmt: skip


def _avro_schema(kind: Any, name: str, path: str) -> Any:
    if str(kind) in _AVRO:
        return _AVRO[str(kind)]
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_struct(kind):
        fields = []
        for each in kind:
            if not re.fullmatch(r"[A-Za-z_]\w*", each.name, re.ASCII):
                raise SparkOptionError(f"the column {path}.{each.name} has a name that Avro does not allow: rename it")
            part = _avro_schema(each.type, f"{name}_{each.name}", f"{path}.{each.name}")
            fields.append({"name": each.name, "type": ["null", part], "default": None})
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise _refused(path, kind, "Avro, whose maps have strings as keys,")
        return {"type": "map", "values": ["null", _avro_schema(kind.item_type, f"{name}_value", f"{path}{{}}")]}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": ["null", _avro_schema(kind.value_type, f"{name}_item", f"{path}[]")]}
    raise _refused(path, kind, "Avro")


_JSON: dict[str, dict[str, Any]] = {
    "int8": {"type": "integer"}, "int16": {"type": "integer"}, "int32": {"type": "integer"}, "int64": {"type": "integer"},
    "float": {"type": "number"}, "double": {"type": "number"}, "bool": {"type": "boolean"}, "string": {"type": "string"},
    "large_string": {"type": "string"}, "binary": {"type": "string", "contentEncoding": "base64"},
    "date32[day]": {"type": "string", "format": "date"},
}  # fmt: skip


def _json_schema(kind: Any, path: str) -> dict[str, Any]:
    if str(kind) in _JSON:
        return _JSON[str(kind)]
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_decimal(kind):
        return {"type": "string"}
    if pa.types.is_struct(kind):
        parts = {each.name: _nullable(_json_schema(each.type, f"{path}.{each.name}")) for each in kind}
        return {"type": "object", "properties": parts}
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return {"type": "object", "additionalProperties": _nullable(_json_schema(kind.item_type, f"{path}{{}}"))}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _nullable(_json_schema(kind.value_type, f"{path}[]"))}
    raise _refused(path, kind, "JSON Schema")


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


_encoders: dict[RegistryOptions, Encoder] = {}


def encoder_of(options: RegistryOptions) -> Encoder | None:
    """The encoder of this process for these options; None if keys and values are written as they are."""
    if not options.sides:
        return None
    found = _encoders.get(options)
    if found is None:
        found = _encoders[options] = Encoder(options)
    return found
