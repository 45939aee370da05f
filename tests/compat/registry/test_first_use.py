"""A schema registry beside brokers for tests: classes go in and come out, by our clients and by confluent-kafka's."""

import time
from dataclasses import dataclass

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla import Consumer, Producer
from ottla.schemas import AvroDeserializer, AvroSerializer, RegistryRefusedError, Schema, SchemaRegistry
from ottla.testing import Broker, Security


@dataclass
class Order:
    id: int
    customer: str
    note: str | None = None


ORDER = Order(7, "Ada")


@pytest.mark.parametrize("security", [False, Security(acls=True)], ids=["plain", "secured"])
def test_objects_of_a_class_go_through_a_topic(security: Security | bool) -> None:
    with Broker(security=security) as broker:
        url = broker.schema_registry_url
        config = broker.client_config() if security else {}
        with Producer(broker.bootstrap_servers, config=config, value_serializer=AvroSerializer(url, Order)) as producer:
            producer.send("orders", ORDER)
        with Consumer(
            broker.bootstrap_servers,
            config=config,
            group_id="g",
            auto_offset_reset="earliest",
            value_deserializer=AvroDeserializer(url, Order),
        ) as consumer:
            consumer.subscribe(["orders"])
            (record,) = consumer.poll(timeout=30)
        assert record.value == ORDER
        assert SchemaRegistry(url).subjects() == ["orders-value"]


def test_both_write_the_same_bytes_and_read_each_other() -> None:
    with Broker() as broker:
        url = broker.schema_registry_url
        context = SerializationContext("orders", MessageField.VALUE)
        ours = AvroSerializer(url, Order).serialize("orders", [], ORDER)
        client = SchemaRegistryClient({"url": url})
        text = SchemaRegistry(url).latest("orders-value").schema.text
        value = {"id": 7, "customer": "Ada", "note": None}
        assert TheirDeserializer(client)(ours, context) == value
        theirs = TheirSerializer(client, text)(value, context)
        assert theirs == ours
        assert AvroDeserializer(url, Order).deserialize("orders", [], theirs) == ORDER


def test_an_incompatible_schema_is_refused_with_the_field() -> None:
    with Broker() as broker:
        registry = SchemaRegistry(broker.schema_registry_url)
        registry.register("s", Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'))
        wider = Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}')
        with pytest.raises(RegistryRefusedError, match="field 'b' of record R has no default"):
            registry.register("s", wider)


def test_an_answer_leaves_at_once() -> None:
    """Head and body of an answer are two writes; without TCP_NODELAY each would wait 40 ms for the client's acknowledgement."""
    with Broker() as broker:
        registry = SchemaRegistry(broker.schema_registry_url)
        registry.subjects()
        times = []
        for _ in range(20):
            began = time.monotonic()
            registry.subjects()
            times.append(time.monotonic() - began)
        assert min(times) < 0.02
