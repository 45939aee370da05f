"""Schemas in a registry: a client of Confluent's REST API, and serializers for Avro, JSON Schema and Protobuf.

    from ottla.schemas import AvroSerializer, AvroDeserializer

    producer = Producer("localhost:9092", value_serializer=AvroSerializer("http://localhost:8081", Order))
    consumer = Consumer("localhost:9092", value_deserializer=AvroDeserializer("http://localhost:8081", Order))

A language's package is imported when its serializer is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.schemas.avro import AvroDeserializer, AvroSerializer
    from ottla.schemas.client import (
        Reference,
        RegisteredSchema,
        RegistryRefusedError,
        RegistryUnavailableError,
        Schema,
        SchemaRegistry,
    )
    from ottla.schemas.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
    from ottla.schemas.protobuf import ProtobufDeserializer, ProtobufSerializer

_PLACES = {
    "AvroSerializer": "avro",
    "AvroDeserializer": "avro",
    "JsonSchemaSerializer": "json_schema",
    "JsonSchemaDeserializer": "json_schema",
    "ProtobufSerializer": "protobuf",
    "ProtobufDeserializer": "protobuf",
    "Reference": "client",
    "RegisteredSchema": "client",
    "RegistryRefusedError": "client",
    "RegistryUnavailableError": "client",
    "Schema": "client",
    "SchemaRegistry": "client",
}

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Reference",
    "RegisteredSchema",
    "RegistryRefusedError",
    "RegistryUnavailableError",
    "Schema",
    "SchemaRegistry",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"ottla.schemas.{_PLACES[name]}"), name)
