"""Our serializers and confluent-kafka's read each other's records; subjects, settings, a registry that is away."""

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJsonDeserializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJsonSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pydantic import BaseModel

from ottla import Consumer, Producer, aio
from ottla.errors import SerializationError
from ottla.schemas import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryUnavailableError,
    Schema,
    SchemaRegistry,
)
from ottla.testing import Broker

VALUE = {"id": 7, "customer": "Ada", "tags": ["a", "b"]}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "customer": {"type": "string"}, "tags": {"type": "array"}},
    }
)
PROTO = """syntax = "proto3";
package shop;
import "part.proto";
import "google/protobuf/timestamp.proto";
message Other { int32 a = 1; }
message Order {
  message Inner { string text = 1; }
  int64 id = 1;
  string customer = 2;
  repeated string tags = 3;
  Part part = 4;
  google.protobuf.Timestamp at = 5;
  Inner inner = 6;
}
"""
PART = 'syntax = "proto3";\npackage shop;\nmessage Part { int32 number = 1; }\n'


@dataclass
class Order:
    id: int
    customer: str
    tags: list[str]


class OrderModel(BaseModel):
    id: int
    customer: str
    tags: list[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def url(broker: Broker) -> str:
    return broker.schema_registry_url


@pytest.fixture(scope="module")
def order_pb2(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("proto")
    (folder / "order.proto").write_text(PROTO)
    (folder / "part.proto").write_text(PART)
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--python_out={folder}", "order.proto", "part.proto"]
    subprocess.run(command, check=True, cwd=folder)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("order_pb2")
    finally:
        sys.path.remove(str(folder))


def context(topic: str, headers: list[Any] | None = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.mark.parametrize("in_header", [False, True], ids=["prefix", "header"])
@pytest.mark.parametrize("language", ["avro", "json", "protobuf"])
def test_records_are_alike_and_read_by_both(url: str, order_pb2: Any, language: str, in_header: bool) -> None:
    client, topic = SchemaRegistryClient({"url": url}), f"{language}-{in_header}"
    theirs: Any
    settings: dict[str, Any] = {"schema.id.serializer": header_schema_id_serializer} if in_header else {}
    value: Any = VALUE
    if language == "avro":
        ours: Any = AvroSerializer(url, AVRO, in_header=in_header)
        theirs, reads = TheirAvroSerializer(client, AVRO, conf=settings), AvroDeserializer(url)
        their_reads: Any = TheirAvroDeserializer(client)
    elif language == "json":
        ours = JsonSchemaSerializer(url, JSON, in_header=in_header)
        theirs, reads = TheirJsonSerializer(JSON, client, conf=settings), JsonSchemaDeserializer(url)
        their_reads = TheirJsonDeserializer(None, schema_registry_client=client)
    else:
        value = order_pb2.Order(**VALUE, part={"number": 3}, inner={"text": "t"})
        value.at.seconds = 5
        ours = ProtobufSerializer(url, order_pb2.Order, in_header=in_header)
        settings |= {"use.deprecated.format": False}
        theirs, reads = (
            TheirProtobufSerializer(order_pb2.Order, client, conf=settings),
            ProtobufDeserializer(url, order_pb2.Order),
        )
        their_reads = TheirProtobufDeserializer(order_pb2.Order, {"use.deprecated.format": False}, client)
    our_headers: list[tuple[str, bytes | None]] = []
    their_headers: list[Any] = []
    mine = ours.serialize(topic, our_headers, value)
    other = theirs(value, context(topic, their_headers))
    assert bool(our_headers) == bool(their_headers) == in_header
    assert our_headers == their_headers
    if language == "json":  # they write spaces
        assert json.loads(mine[0 if in_header else 5 :]) == json.loads(other[0 if in_header else 5 :])
    else:
        assert mine == other
    assert reads.deserialize(topic, their_headers, other) == value
    assert their_reads(mine, context(topic, our_headers)) == value


def test_protobuf_without_a_class_is_built_from_the_registry(url: str, order_pb2: Any) -> None:
    inner = order_pb2.Order.Inner(text="deep")
    data = ProtobufSerializer(url, order_pb2.Order.Inner).serialize("inner", [], inner)
    assert data[5:8] == bytes([4, 2, 0])  # two message indexes: 1, 0
    found = ProtobufDeserializer(url).deserialize("inner", [], data)
    assert (found.DESCRIPTOR.full_name, found.text) == ("shop.Order.Inner", "deep")


@pytest.mark.parametrize("kind", [Order, OrderModel])
@pytest.mark.parametrize(
    "pair", [(AvroSerializer, AvroDeserializer), (JsonSchemaSerializer, JsonSchemaDeserializer)], ids=["avro", "json"]
)
def test_objects_go_in_and_come_out(broker: Broker, url: str, kind: Any, pair: Any) -> None:
    topic = f"objects-{kind.__name__}-{pair[0].kind}"
    with Producer(broker.bootstrap_servers, key_serializer=pair[0](url, kind), value_serializer=pair[0](url, kind)) as producer:
        producer.send(topic, kind(**VALUE), key=kind(**VALUE))
    with Consumer(
        broker.bootstrap_servers,
        group_id=topic,
        auto_offset_reset="earliest",
        key_deserializer=pair[1](url, kind),
        value_deserializer=pair[1](url, kind),
    ) as consumer:
        consumer.subscribe([topic])
        (record,) = consumer.poll(timeout=30)
    assert record.key == record.value == kind(**VALUE)
    assert {f"{topic}-key", f"{topic}-value"} <= set(SchemaRegistry(url).subjects())


def test_the_asyncio_clients_take_the_same_serializers(broker: Broker, url: str) -> None:
    async def both() -> Any:
        serializer = AvroSerializer(url, Order, in_header=True)
        await asyncio.to_thread(serializer.prepare, "aio")
        async with aio.Producer(broker.bootstrap_servers, value_serializer=serializer) as producer:
            await producer.send("aio", Order(**VALUE), headers=[])
        async with aio.Consumer(
            broker.bootstrap_servers,
            group_id="aio",
            auto_offset_reset="earliest",
            value_deserializer=AvroDeserializer(url, Order),
        ) as consumer:
            consumer.subscribe(["aio"])
            (record,) = await consumer.poll(timeout=30)
            return record.value

    assert asyncio.run(both()) == Order(**VALUE)


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ("topic", "sub-value"),
        ("record", "shop.Order"),
        ("topic_record", "sub-shop.Order"),
        (lambda topic, name, is_key: f"own-{topic}-{name}-{is_key}", "own-sub-shop.Order-False"),
    ],
)
def test_subjects(url: str, subject: Any, wanted: str) -> None:
    AvroSerializer(url, AVRO, subject=subject).serialize("sub", [], VALUE)
    assert wanted in SchemaRegistry(url).subjects()


def test_a_schema_that_must_be_there(url: str) -> None:
    with pytest.raises(SerializationError, match=r"it is not in subject must-value\. Register it"):
        AvroSerializer(url, AVRO, auto_register=False).serialize("must", [], VALUE)
    with pytest.raises(SerializationError, match="subject must-value has no schema yet"):
        AvroSerializer(url, use_latest=True).serialize("must", [], VALUE)
    registered = SchemaRegistry(url).register("must-value", Schema(AVRO))
    data = AvroSerializer(url, AVRO, auto_register=False).serialize("must", [], VALUE)
    assert AvroSerializer(url, use_latest=True).serialize("must", [], VALUE) == data
    assert AvroSerializer(url, use_id=registered.id).serialize("must", [], VALUE) == data


def test_a_value_that_does_not_fit_is_named(url: str) -> None:
    with pytest.raises(SerializationError, match="customer"):
        AvroSerializer(url, AVRO).serialize("fit", [], VALUE | {"customer": 7})
    with pytest.raises(SerializationError, match=r"customer: 7 is not of type 'string'"):
        JsonSchemaSerializer(url, JSON).serialize("fit-json", [], VALUE | {"customer": 7})


def test_a_registry_that_is_away() -> None:
    with Broker() as broker:
        url = broker.schema_registry_url
        serializer, deserializer = AvroSerializer(url, Order), AvroDeserializer(url, Order)
        data = serializer.serialize("orders", [], Order(**VALUE))
        assert deserializer.deserialize("orders", [], data) == Order(**VALUE)
        latest = AvroSerializer(SchemaRegistry(url, latest_ttl_s=0), use_latest=True)
        latest.serialize("orders", [], VALUE)
    assert deserializer.deserialize("orders", [], serializer.serialize("orders", [], Order(**VALUE))) == Order(**VALUE)
    assert latest.serialize("orders", [], VALUE) == data
    with pytest.raises(RegistryUnavailableError, match=f"at {url} does not answer"):
        serializer.serialize("other", [], Order(**VALUE))
    with pytest.raises(RegistryUnavailableError, match=f"at {url} does not answer"):
        AvroDeserializer(url).deserialize("orders", [], data)


def test_the_second_address_answers_when_the_first_is_away(url: str) -> None:
    registry = SchemaRegistry(f"http://127.0.0.1:1,{url}")
    assert registry.register("second", Schema(AVRO)).version == 1


def test_bytes_without_a_schema_are_told_apart(url: str) -> None:
    for data in (b"", b"{}", b"\x00\x00", b"\x05\x00\x00\x00\x01abc"):
        with pytest.raises(ValueError, match="does not begin with the id of a schema"):
            AvroDeserializer(url).deserialize("t", [], data)
    json_data = JsonSchemaSerializer(url, JSON).serialize("mixed", [], VALUE)
    with pytest.raises(ValueError, match="schema of type JSON, and this deserializer reads AVRO"):
        AvroDeserializer(url).deserialize("mixed", [], json_data)
