"""Serializer and deserializer of Protobuf messages with schemas in a registry.

    Producer(..., value_serializer=ProtobufSerializer("http://localhost:8081", order_pb2.Order))

A generated class brings its own schema; the files that it imports are registered as references, under the name they are
imported by. Without a class, the deserializer builds one from the registry's schema.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from ottla.errors import ConfigError, SerializationError
from ottla.schemas.client import Reference, Schema, SchemaRegistry
from ottla.schemas.framing import Headers, NotFramed, read_indexes, write_indexes
from ottla.schemas.serde import SchemaDeserializer, SchemaSerializer, SubjectStrategy

try:
    from google.protobuf import message_factory
    from google.protobuf.message import DecodeError, Message
except ImportError:
    raise ConfigError("Protobuf needs the package protobuf: pip install 'ottla[registry]'") from None

WELL_KNOWN = ("google/protobuf/", "google/type/", "confluent/")


def _text(file: Any) -> str:
    """A file as registries take it from clients that have no text: the serialized descriptor in base64."""
    return base64.b64encode(file.serialized_pb).decode()


def indexes_of(message: Any) -> list[int]:
    """The way from the file to a message: the number of each message among its neighbours."""
    path: list[int] = []
    while message.containing_type is not None:
        path.append([each.name for each in message.containing_type.nested_types].index(message.name))
        message = message.containing_type
    path.append(list(message.file.message_types_by_name).index(message.name))
    return path[::-1]


class ProtobufSerializer(SchemaSerializer):
    """Writes messages of a generated class. The arguments but `message` are those of `AvroSerializer`."""

    kind = "PROTOBUF"

    def __init__(
        self,
        registry: SchemaRegistry | str,
        message: type[Message],
        *,
        subject: str | SubjectStrategy = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
        use_id: int | None = None,
        normalize: bool = False,
        in_header: bool = False,
    ) -> None:
        super().__init__(
            registry,
            message,
            subject=subject,
            auto_register=auto_register,
            use_latest=use_latest,
            use_id=use_id,
            normalize=normalize,
            in_header=in_header,
        )
        if not hasattr(message, "DESCRIPTOR"):
            raise ConfigError(f"ProtobufSerializer takes a class that protoc has generated, not {message!r}")
        self._message = message

    def prepare(self, topic: str) -> None:
        """Register or look up the schema for a topic now."""
        self._of(topic)

    def _of(self, topic: str) -> Any:
        found = self._prepared.get(topic)
        if found is None:
            descriptor = self._message.DESCRIPTOR
            schema = Schema(_text(descriptor.file), "PROTOBUF", self._references(descriptor.file))
            indexes = write_indexes(indexes_of(descriptor))
            found = self._prepare(topic, schema, descriptor.full_name, lambda final: None, indexes)
            self._prepared[topic] = found
        return found

    def _references(self, file: Any) -> tuple[Reference, ...]:
        found = []
        for each in file.dependencies:
            if each.name.startswith(WELL_KNOWN):
                continue
            schema = Schema(_text(each), "PROTOBUF", self._references(each))
            stored = (
                self.registry.register(each.name, schema) if self._auto_register else self.registry.look_up(each.name, schema)
            )
            found.append(Reference(each.name, each.name, stored.version))
        return tuple(found)

    def serialize(self, topic: str, headers: Headers, value: Any) -> bytes:
        """The message's bytes, with the id of its schema."""
        if not isinstance(value, self._message):
            raise SerializationError(
                f"the value for topic {topic} is {type(value).__name__}, and this serializer takes {self._message.__name__}"
            )
        front, header, _, _ = self._of(topic)
        if header is not None:
            self._add_header(headers, header)
        data: bytes = front + value.SerializeToString()
        return data


class ProtobufDeserializer(SchemaDeserializer):
    """Reads messages: as objects of a generated class, or of one that is built from the schema they were written with."""

    kind = "PROTOBUF"

    def __init__(
        self, registry: SchemaRegistry | str, message: type[Message] | None = None, *, subject: str | SubjectStrategy = "topic"
    ) -> None:
        super().__init__(registry, subject=subject)
        self._message = message

    def _make_codec(self, schema: Schema) -> Any:
        if self._message is not None:
            return self._message
        from ottla.schemas.languages import Imported, Source
        from ottla.schemas.languages.protobuf import built

        imports = tuple(Imported(name, "", 0, each.text) for name, each in self.registry.imports(schema))
        return built(Source("PROTOBUF", schema.text, imports))

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        """The message that the bytes hold."""
        codec, in_header, start = self._codec(topic, data, headers)
        if in_header:
            indexes, _ = read_indexes(in_header)
        else:
            indexes, start = read_indexes(data, start)
        kind = codec if self._message is not None else _class_at(codec, indexes)
        try:
            return kind.FromString(bytes(data[start:]))
        except DecodeError as problem:
            raise NotFramed(f"it is no {kind.DESCRIPTOR.full_name} ({problem})") from None


def _class_at(file: Any, indexes: Sequence[int]) -> Any:
    try:
        message = list(file.message_types_by_name.values())[indexes[0]]
        for each in indexes[1:]:
            message = message.nested_types[each]
    except IndexError:
        raise NotFramed(f"its message indexes {list(indexes)} lead to no message of the schema") from None
    return message_factory.GetMessageClass(message)
