"""Programs that a type checker must refuse, at every line with `type: ignore` and at no other: unused ones are errors."""

from ottla import Admin, Consumer, ConsumerRecord, Producer, Worker, aio, json_of


def dump(value: int) -> bytes:
    """A serializer."""
    return bytes(value)


def load(data: bytes) -> int:
    """A deserializer."""
    return len(data)


def settings() -> None:
    Producer("h:1", linger=20)  # type: ignore
    Producer("h:1", linger=20, value_serializer="json")  # type: ignore
    Producer("h:1", linger_ms=2.5)  # type: ignore
    Producer("h:1", group_id="g")  # type: ignore
    Producer("h:1", key_serializer=5)  # type: ignore
    Producer("h:1", value_serializer=load)  # type: ignore
    Producer(5)  # type: ignore
    Consumer("h:1", heartbeat_ms=5)  # type: ignore
    Consumer("h:1", linger_ms=5)  # type: ignore
    Consumer("h:1", value_deserializer=dump)  # type: ignore
    aio.Producer("h:1", linger=20)  # type: ignore
    aio.Consumer("h:1", topic="t")  # type: ignore
    Admin("h:1", timeout=5)  # type: ignore
    aio.Admin("h:1", acks="all")  # type: ignore


def sending(producer: Producer[str, int]) -> None:
    producer.send("t", "text")  # type: ignore
    producer.send("t", 5, b"key")  # type: ignore
    producer.send("t", 5, partition="0")  # type: ignore
    producer.send("t", 5, "key", headers=5)  # type: ignore
    producer.send(topic=5)  # type: ignore
    producer.send_many("t", ["text"])  # type: ignore
    print(producer.send("t", 5).result().ofset)  # type: ignore
    producer.flush(timeout_s=5)  # type: ignore
    producer.flush("5s")  # type: ignore
    Producer("h:1").send("t", "text")  # type: ignore
    Producer("h:1", value_serializer="str").send("t", b"bytes")  # type: ignore
    Producer("h:1", value_serializer=dump).send("t", "text")  # type: ignore


async def awaiting(producer: aio.Producer[str, int], consumer: aio.Consumer[str, int]) -> None:
    await producer.send("t", "text")  # type: ignore
    print((await producer.send("t", 5)).offset)  # type: ignore
    print((await (await producer.send("t", 5))).ofset)  # type: ignore
    await consumer.seek(("t", 0), 5)  # type: ignore
    for record in consumer.poll():  # type: ignore
        print(record)


def reading(consumer: Consumer[str, int]) -> None:
    for record in consumer.poll():
        record.value.encode()  # type: ignore
    for record in consumer:
        record.key.bit_length()  # type: ignore
    consumer.poll(max_record=5)  # type: ignore
    consumer.position("t", 0, 5)  # type: ignore
    consumer.assign(None)  # type: ignore
    consumer.subscribe([5])  # type: ignore
    consumer.commit({"t": 5})  # type: ignore
    consumer.seek("t", 5)  # type: ignore


def handle(record: ConsumerRecord[bytes, int]) -> None:
    """A handler."""


def application(texts: Consumer[bytes, str], numbers: Consumer[bytes, int]) -> None:
    Worker(numbers, "t", handle, order="topic")  # type: ignore
    Worker(texts, "t", handle)  # type: ignore
    Producer("h:1", value_serializer=json_of(int)).send("t", "text")  # type: ignore
