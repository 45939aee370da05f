"""Programs that a type checker must accept, and the types that it must infer. mypy reads this in `make lint`."""

import json
import re
from collections.abc import Callable
from typing import Any, assert_type

from ottla import (
    Admin,
    Consumer,
    ConsumerRecord,
    DeadLetters,
    Deliveries,
    Delivery,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Producer,
    RecordMetadata,
    Retry,
    TopicPartition,
    Tracing,
    Worker,
    aio,
    json_of,
)
from ottla.errors import KafkaError


class Order:
    """A value of the user's."""


class OrderSerializer:
    """As Confluent's serializers are."""

    def serialize(self, topic: str, headers: object, value: Order) -> bytes:
        return repr(value).encode()


class OrderDeserializer:
    """A deserializer that does not look at headers."""

    def deserialize(self, topic: str, data: bytes) -> Order:
        return Order()


def dump(value: Order) -> bytes:
    """A serializer that is a function."""
    return repr(value).encode()


def dump_for(topic: str, value: Order) -> bytes:
    """A serializer that also gets the topic."""
    return topic.encode() + dump(value)


def load(data: bytes) -> Order:
    """A deserializer that is a function."""
    return Order()


# What a producer takes


def serializers_tell_the_types_of_keys_and_values(name: str) -> None:
    assert_type(Producer("h:1"), Producer[bytes, bytes])
    assert_type(Producer("h:1", value_serializer="str"), Producer[bytes, str])
    assert_type(Producer("h:1", value_serializer=str), Producer[bytes, str])
    assert_type(Producer("h:1", value_serializer="json"), Producer[bytes, Any])
    assert_type(Producer("h:1", value_serializer=name), Producer[bytes, Any])
    assert_type(Producer("h:1", value_serializer=dump), Producer[bytes, Order])
    assert_type(Producer("h:1", value_serializer=dump_for), Producer[bytes, Order])
    assert_type(Producer("h:1", value_serializer=OrderSerializer()), Producer[bytes, Order])
    assert_type(Producer("h:1", value_serializer=OrderSerializer), Producer[bytes, Order])
    assert_type(Producer("h:1", value_serializer=json_of(Order)), Producer[bytes, Order])
    assert_type(Producer("h:1", key_serializer="str"), Producer[str, bytes])
    assert_type(Producer("h:1", key_serializer="str", value_serializer="str"), Producer[str, str])
    assert_type(Producer("h:1", key_serializer="str", value_serializer="json"), Producer[str, Any])
    assert_type(Producer("h:1", key_serializer="str", value_serializer=dump), Producer[str, Order])
    assert_type(Producer("h:1", key_serializer="int64", value_serializer="str"), Producer[Any, str])
    assert_type(Producer("h:1", key_serializer=str.encode), Producer[str, bytes])
    assert_type(Producer("h:1", key_serializer=str.encode, value_serializer=dump), Producer[str, Order])
    assert_type(aio.Producer("h:1"), aio.Producer[bytes, bytes])
    assert_type(aio.Producer("h:1", key_serializer="str", value_serializer=dump), aio.Producer[str, Order])


def a_mapping_of_settings_tells_no_types(config: dict[str, Any]) -> None:
    assert_type(Producer(config), Producer[Any, Any])
    assert_type(Producer("h:1", config), Producer[Any, Any])
    assert_type(Producer(config=config), Producer[Any, Any])
    assert_type(Producer[str, Order](config), Producer[str, Order])
    producer: Producer[str, Order] = Producer(config=config)
    producer.send("t", Order(), "key")


def settings_are_keywords() -> None:
    Producer("h:1", linger_ms=20, compression_type="zstd", acks="all", enable_idempotence=True)
    Producer("h:1", linger_ms="5s", acks=1, batch_size="100000", partitioner="uniform-sticky", client_id=None)
    Producer(["h:1", ("h", 2)], security_protocol="SASL_SSL", sasl_plain_username="u", sasl_plain_password="p")
    Consumer("h:1", group_id="g", enable_auto_commit=False, auto_offset_reset="earliest", session_timeout_ms="10s")
    aio.Producer("h:1", linger_ms=20)
    aio.Consumer("h:1", max_poll_records=10)
    Admin("h:1", request_timeout_ms="5s")
    aio.Admin(bootstrap_controllers="h:1")


def a_client_is_annotated_without_types(producer: Producer, consumer: Consumer, record: ConsumerRecord) -> None:
    producer.send("t", {"any": "value"}, ["any", "key"])
    assert_type(consumer.poll(), list[ConsumerRecord[Any, Any]])
    print(record.value)


def clients_of_any_types_are_passed_on() -> None:
    for record in Consumer("h:1", value_deserializer="str").poll():
        a_client_is_annotated_without_types(Producer("h:1", value_serializer=dump), Consumer("h:1"), record)


class AuditedProducer(Producer[str, Order]):
    """A producer of the user's."""

    def __init__(self) -> None:
        super().__init__("h:1", key_serializer="str", value_serializer=dump)


def a_subclass_keeps_its_types() -> None:
    assert_type(AuditedProducer().send("t", Order(), "k"), Delivery)


# What a producer returns


def results_of_a_producer(on_delivery: Callable[[RecordMetadata | None, KafkaError | None], None]) -> None:
    with Producer("h:1", key_serializer="str", value_serializer=dump) as producer:
        assert_type(producer, Producer[str, Order])
        delivery = producer.send("t", Order(), "key", headers={"h": b"1"}, on_delivery=on_delivery)
        assert_type(delivery, Delivery)
        assert_type(delivery.result(timeout=5), RecordMetadata)
        assert_type(delivery.result().offset, int)
        assert_type(delivery.exception(), KafkaError | None)
        many = producer.send_many("t", [Order(), None], keys=["a", "b"])
        assert_type(many, Deliveries)
        assert_type(many.result(), list[RecordMetadata])
        assert_type(producer.flush(), None)
        with producer.transaction() as same:
            assert_type(same, Producer[str, Order])


async def results_of_an_asyncio_producer() -> None:
    async with aio.Producer("h:1", value_serializer=dump) as producer:
        assert_type(producer, aio.Producer[bytes, Order])
        delivery = await producer.send("t", Order())
        assert_type(await delivery, RecordMetadata)
        assert_type(await (await producer.send_many("t", [Order()])), list[RecordMetadata])
        async with producer.transaction() as same:
            assert_type(same, aio.Producer[bytes, Order])


# What a consumer returns


def deserializers_tell_the_types_of_records(name: str) -> None:
    assert_type(Consumer("h:1"), Consumer[bytes, bytes])
    assert_type(Consumer("h:1", value_deserializer="json"), Consumer[bytes, Any])
    assert_type(Consumer("h:1", value_deserializer=json.loads), Consumer[bytes, Any])
    assert_type(Consumer("h:1", value_deserializer=name), Consumer[bytes, Any])
    assert_type(Consumer("h:1", value_deserializer=OrderDeserializer()), Consumer[bytes, Order])
    assert_type(Consumer("h:1", value_deserializer=json_of(Order)), Consumer[bytes, Order])
    with Consumer("h:1", key_deserializer="str", value_deserializer=load, group_id="g") as consumer:
        assert_type(consumer, Consumer[str, Order])
        consumer.subscribe(["t"], on_assigned=print)
        for record in consumer.poll(1.0):
            assert_type(record, ConsumerRecord[str, Order])
            assert_type(record.value, Order)
            assert_type(record.key, str)
        for record in consumer:
            assert_type(record.value, Order)
        assert_type(consumer.batches(), dict[TopicPartition, list[ConsumerRecord[str, Order]]])
        assert_type(consumer.position(("t", 0)), int)
        assert_type(consumer.position("t", 0), int)
        assert_type(consumer.position([("t", 0)]), dict[TopicPartition, int])
        assert_type(consumer.position(("t", 0), ("t", 1)), dict[TopicPartition, int])
        assert_type(consumer.committed("t", 0), OffsetAndMetadata | None)
        assert_type(consumer.committed(("t", 0)), OffsetAndMetadata | None)
        assert_type(consumer.committed([("t", 0)]), dict[TopicPartition, OffsetAndMetadata | None])
        assert_type(consumer.committed(("t", 0), ("t", 1)), dict[TopicPartition, OffsetAndMetadata | None])
        assert_type(consumer.assignment(), set[TopicPartition])
        consumer.seek(("t", 0), 5)
        consumer.subscribe(re.compile("orders-.*"))
        consumer.assign([TopicPartition("t", 0), ("t", 1)])
        consumer.pause(*consumer.assignment())
        consumer.commit({TopicPartition("t", 0): 5})
        consumer.commit({("t", 0): OffsetAndMetadata(5)})
        consumer.commit(consumer.poll())
        assert_type(consumer.offsets_for_times({TopicPartition("t", 0): 5}), dict[TopicPartition, OffsetAndTimestamp | None])
        assert_type(consumer.end_offsets(("t", 0)), dict[TopicPartition, int])


async def results_of_an_asyncio_consumer() -> None:
    async with aio.Consumer("h:1", key_deserializer="str", value_deserializer=load) as consumer:
        assert_type(consumer, aio.Consumer[str, Order])
        assert_type(consumer.assign(("t", 0)), None)
        assert_type(await consumer.poll(), list[ConsumerRecord[str, Order]])
        assert_type(await consumer.batches(), dict[TopicPartition, list[ConsumerRecord[str, Order]]])
        async for record in consumer:
            assert_type(record.value, Order)
        async for partition, _chunk in consumer.read_ranges({("t", 0): (0, 5)}):
            assert_type(partition, TopicPartition)
        await consumer.commit()


def handle(record: ConsumerRecord[bytes, Order]) -> None:
    """A handler."""


async def handle_async(record: ConsumerRecord[bytes, Order]) -> None:
    """A handler for asyncio."""


async def application() -> None:
    consumer = Consumer("h:1", group_id="g", value_deserializer=json_of(Order), interceptors=[Tracing()])
    assert_type(consumer, Consumer[bytes, Order])
    assert_type(consumer.poll()[0].value, Order)
    producer = Producer("h:1", value_serializer=json_of(Order), interceptors=[Tracing])
    assert_type(producer, Producer[bytes, Order])
    letters = DeadLetters(Producer("h:1"), "t.dead")
    assert_type(Worker(consumer, "t", handle, retry=Retry(on=OSError), dead_letters=letters).run(), int)
    aio_consumer = aio.Consumer("h:1", group_id="g", value_deserializer=json_of(Order))
    assert_type(await aio.Worker(aio_consumer, ["t"], handle_async, concurrency=10).run(), int)
