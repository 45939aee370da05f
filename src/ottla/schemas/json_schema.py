"""Serializer and deserializer of JSON with a schema in a registry.

    Producer(..., value_serializer=JsonSchemaSerializer("http://localhost:8081", Order))

`schema` is JSON Schema (text or dict), or a dataclass or pydantic model. Values are checked against the schema unless
`validate=False`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ottla.client_core.json_values import json_of
from ottla.errors import ConfigError, SerializationError
from ottla.schemas.classes import is_class, json_schema_of
from ottla.schemas.client import Schema, SchemaRegistry
from ottla.schemas.framing import Headers, NotFramed
from ottla.schemas.serde import Prepared, SchemaDeserializer, SchemaSerializer, SubjectStrategy

try:
    from jsonschema import exceptions, validators
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7
except ImportError:
    raise ConfigError("JSON Schema needs the packages jsonschema and referencing: pip install 'ottla[registry]'") from None


def _validator(registry: SchemaRegistry, schema: Schema) -> Any:
    """What checks values; nothing is fetched but the referenced schemas of the registry."""
    parsed = json.loads(schema.text)
    resources = [
        (name, Resource.from_contents(json.loads(imported.text), default_specification=DRAFT7))
        for name, imported in registry.imports(schema)
    ]
    kind = validators.validator_for(
        parsed, default=validators.validator_for({"$schema": "http://json-schema.org/draft-07/schema#"})
    )
    return kind(parsed, registry=Registry().with_resources(resources))


def _name(schema: Schema) -> str:
    parsed = json.loads(schema.text)
    return str(parsed.get("title") or parsed.get("$id") or "") if isinstance(parsed, dict) else ""


def _check(validator: Any, value: Any) -> None:
    problem = exceptions.best_match(validator.iter_errors(value))
    if problem is not None:
        where = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in problem.absolute_path).lstrip(".")
        raise SerializationError(
            f"the value does not fit its JSON schema: {f'{where}: ' if where else ''}{problem.message:.300}"
        )


class JsonSchemaSerializer(SchemaSerializer):
    """Writes values as JSON, checked against a schema that is kept in a registry.

    - `schema`: text, dict or `Schema`, a dataclass or a pydantic model; None: the class of the first value says it.
    - `validate`: check each value. Objects of a class are right by construction: without, they are written faster.
    - The other arguments are those of `AvroSerializer`.
    """

    kind = "JSON"

    def __init__(
        self,
        registry: SchemaRegistry | str,
        schema: str | Mapping[str, Any] | Schema | type | None = None,
        *,
        subject: str | SubjectStrategy = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
        use_id: int | None = None,
        normalize: bool = False,
        in_header: bool = False,
        validate: bool = True,
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
        self._validate = validate
        self._class: Any = None
        self._schema: Schema | None = None
        if schema is not None:
            self._set(schema)

    def _set(self, given: Any) -> None:
        if is_class(given):
            self._class = json_of(given)
            self._schema = Schema(json.dumps(json_schema_of(given)), "JSON")
        elif isinstance(given, Schema):
            self._schema = given
        else:
            self._schema = Schema(given if isinstance(given, str) else json.dumps(given), "JSON")

    def prepare(self, topic: str) -> None:
        self._of(topic)

    def _of(self, topic: str) -> Prepared:
        found = self._prepared.get(topic)
        if found is None:
            schema = self._schema
            if schema is None and not self._use_latest and self._use_id is None:
                raise SerializationError("JsonSchemaSerializer has no schema: give it one, or a dataclass, or use_latest=True")
            name = "" if schema is None else _name(schema)
            chosen = schema or Schema("true", "JSON")
            found = self._prepare(
                topic, chosen, name, lambda final: _validator(self.registry, final) if self._validate else None
            )
            self._prepared[topic] = found
        return found

    def serialize(self, topic: str, headers: Headers, value: Any) -> bytes:
        """The value as JSON, with the id of its schema."""
        if self._schema is None and is_class(type(value)):
            self._set(type(value))
        front, header, _, validator = self._of(topic)
        if self._class is not None:
            data: bytes = self._class.serialize(topic, headers, value)
            if validator is not None:
                _check(validator, json.loads(data))
        else:
            if validator is not None:
                _check(validator, value)
            data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if header is not None:
            self._add_header(headers, header)
        return front + data


class JsonSchemaDeserializer(SchemaDeserializer):
    """Reads JSON that was written with a schema of a registry: as dicts and lists, or as objects of a class."""

    kind = "JSON"

    def __init__(
        self,
        registry: SchemaRegistry | str,
        schema: type | None = None,
        *,
        subject: str | SubjectStrategy = "topic",
        validate: bool = True,
    ) -> None:
        super().__init__(registry, subject=subject)
        self._validate = validate
        self._class: Any = json_of(schema) if schema is not None else None

    def _make_codec(self, schema: Schema) -> Any:
        return _validator(self.registry, schema) if self._validate else True

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        """The value that the bytes hold."""
        validator, _, start = self._codec(topic, data, headers)
        content = data[start:]
        if self._class is not None and not self._validate:
            return self._class.deserialize(topic, headers, content)
        try:
            value = json.loads(content)
        except ValueError as problem:
            raise NotFramed(f"it is not JSON ({problem})") from None
        if self._validate:
            _check(validator, value)
        return value if self._class is None else self._class.deserialize(topic, headers, content)
