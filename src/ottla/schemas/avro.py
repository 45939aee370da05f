"""Serializer and deserializer of Avro, by fastavro, with schemas in a registry.

    Producer(..., value_serializer=AvroSerializer("http://localhost:8081", Order))

`schema` is Avro's JSON (text or dict), or a dataclass or pydantic model, whose schema is derived (`classes.py`) and whose
objects are written and read. Records are equal to those of confluent-kafka's serializers, byte for byte.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from ottla.errors import ConfigError, SerializationError
from ottla.schemas.classes import AvroClass, avro_class, is_class
from ottla.schemas.client import Schema, SchemaRegistry
from ottla.schemas.framing import Headers
from ottla.schemas.serde import Prepared, SchemaDeserializer, SchemaSerializer, SubjectStrategy

try:
    from fastavro import parse_schema, schemaless_reader, schemaless_writer

    from ottla.schemas.avro_encoder import Encode, encoder_of
except ImportError:
    raise ConfigError("Avro needs the package fastavro: pip install 'ottla[registry]'") from None


def _parsed(registry: SchemaRegistry, schema: Schema) -> Any:
    """A schema as fastavro wants it, with the types that it references."""
    named: dict[str, Any] = {}
    for _, imported in registry.imports(schema):
        parse_schema(_json(imported.text), named_schemas=named)
    return parse_schema(_json(schema.text), named_schemas=named)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()  # a bare name, such as string


def _name(parsed: Any) -> str:
    """The full name of a schema, for subjects by record."""
    if isinstance(parsed, Mapping):
        return str(parsed.get("name") or parsed.get("type"))
    return str(parsed)


class AvroSerializer(SchemaSerializer):
    """Writes values as Avro, and keeps their schema in a registry.

    - `schema`: text, dict or `Schema`, a dataclass or a pydantic model; None: the class of the first value says it.
    - `subject`: under which name the schema is kept: "topic" (`orders-value`), "record", "topic_record", or a function.
    - `auto_register`: store the schema at first use. False: it must be there, as in production.
    - `use_latest`: write with the newest version of the subject. `use_id`: with the schema of this id.
    - `in_header`: name the schema in a header of the record, and not in front of its value.
    - `to_dict`: a function that makes a dict of a value before it is written.
    """

    kind = "AVRO"

    def __init__(
        self,
        registry: SchemaRegistry | str,
        schema: str | Mapping[str, Any] | list[Any] | Schema | type | None = None,
        *,
        subject: str | SubjectStrategy = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
        use_id: int | None = None,
        normalize: bool = False,
        in_header: bool = False,
        to_dict: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(
            registry,
            schema,
            subject=subject,
            auto_register=auto_register,
            use_latest=use_latest,
            use_id=use_id,
            normalize=normalize,
            in_header=in_header,
        )
        self._to_dict = to_dict
        self._class: AvroClass | None = None
        self._schema: Schema | None = None
        if schema is not None:
            self._set(schema)

    def _set(self, given: Any) -> None:
        if is_class(given):
            self._class = avro_class(given)
            self._schema = Schema(self._class.schema_text)
        elif isinstance(given, Schema):
            self._schema = given
        else:
            self._schema = Schema(given if isinstance(given, str) else json.dumps(given))

    def prepare(self, topic: str) -> None:
        self._of(topic)

    def _of(self, topic: str) -> Prepared:
        found = self._prepared.get(topic)
        if found is None:
            schema = self._schema
            if schema is None and not self._use_latest and self._use_id is None:
                raise SerializationError("AvroSerializer has no schema: give it one, or a dataclass, or use_latest=True")
            if schema is None:
                schema = Schema('"null"')
                name = ""
            else:
                name = _name(_parsed(self.registry, schema))
            found = self._prepare(topic, schema, name, lambda chosen: _writer_of(_parsed(self.registry, chosen)))
            self._prepared[topic] = found
        return found

    def serialize(self, topic: str, headers: Headers, value: Any) -> bytes:
        """The value as Avro, with the id of its schema."""
        if self._schema is None and is_class(type(value)):
            self._set(type(value))
        front, header, _, (encode, parsed) = self._prepared.get(topic) or self._of(topic)
        if self._to_dict is not None:
            value = self._to_dict(value)
        elif self._class is not None:
            value = self._class.dump(value)
        try:
            data: bytes = front + encode(value)
        except Exception:
            data = front + _written(parsed, value)
        if header is not None:
            self._add_header(headers, header)
        return data


def _writer_of(parsed: Any) -> tuple[Encode, Any]:
    """The function that encodes values of a schema, and the schema for values that it does not take."""
    named = parsed.get("__named_schemas", {}) if isinstance(parsed, dict) else {}
    return encoder_of(parsed, named) or partial(_written, parsed), parsed


def _written(parsed: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    out = io.BytesIO()
    try:
        schemaless_writer(out, parsed, value)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, struct.error) as problem:
        raise SerializationError(f"the value does not fit its Avro schema: {_reason(parsed, value, problem)}") from problem
    return out.getvalue()


def _reason(parsed: Any, value: Any, problem: Exception) -> str:
    """Which field is wrong: fastavro's writer does not say."""
    from fastavro.validation import ValidationError, validate

    try:
        validate(value, parsed)
    except ValidationError as found:
        return "; ".join(map(str, found.errors)) if hasattr(found, "errors") else str(found)
    except Exception:
        pass
    return f"{type(problem).__name__}: {problem}"


class AvroDeserializer(SchemaDeserializer):
    """Reads Avro that was written with a schema of a registry.

    `schema` is what the values shall look like (Avro's resolution fills and drops fields); None: as they were written. With a
    dataclass or pydantic model, its objects come out; `from_dict` makes anything else of each value.
    """

    kind = "AVRO"

    def __init__(
        self,
        registry: SchemaRegistry | str,
        schema: str | Mapping[str, Any] | list[Any] | Schema | type | None = None,
        *,
        subject: str | SubjectStrategy = "topic",
        use_latest: bool = False,
        from_dict: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(registry, subject=subject)
        self._use_latest = use_latest
        self._from_dict = from_dict
        self._reader: Any = None
        if is_class(schema):
            own = avro_class(cast(type, schema))
            self._reader, self._from_dict = parse_schema(json.loads(own.schema_text)), from_dict or own.load
        elif isinstance(schema, Schema):
            self._reader = _parsed(self.registry, schema)
        elif schema is not None:
            self._reader = parse_schema(cast(Any, _json(schema) if isinstance(schema, str) else schema))

    def _make_codec(self, schema: Schema) -> Any:
        return _parsed(self.registry, schema)

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        """The value that Avro bytes hold."""
        writer, _, start = self._codec(topic, data, headers)
        source = io.BytesIO(data)
        source.seek(start)
        value = schemaless_reader(source, writer, self._reader)
        return value if self._from_dict is None else self._from_dict(value)
