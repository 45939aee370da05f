"""Latency at a fixed rate: from `send` to the delivery result, and to the consumer of the same client in another process.

Both processes read the system's monotonic clock; a record's value begins with the time of its `send`. No client lingers.

And the latency of a caller who sends one record, waits for it and sends the next, with every client's default settings.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

STAMP = Struct(">q")
VALUE_BYTES = 100
WAIT_S = 10.0


def stamped() -> bytes:
    return STAMP.pack(time.monotonic_ns()) + bytes(VALUE_BYTES - STAMP.size)


def age_us(value: bytes) -> float:
    return (time.monotonic_ns() - STAMP.unpack_from(value)[0]) / 1000


def ticks(rate: int, count: int) -> Iterator[float]:
    """How long to sleep before each record: a late one does not delay those after it."""
    began = time.monotonic()
    for number in range(count):
        yield max(0.0, began + number / rate - time.monotonic())


# Producers: each returns the microseconds from `send` to the delivery result of every record


def produce_ottla(bootstrap: str, topic: str, rate: int, count: int) -> list[float]:
    from ottla import Producer

    found: list[float] = []
    with Producer(bootstrap, linger_ms=0) as producer:
        producer.partitions_for(topic)
        for pause in ticks(rate, count):
            time.sleep(pause)
            value = stamped()
            producer.send(topic, value, on_delivery=lambda metadata, error, value=value: found.append(age_us(value)))
    return found


def produce_ottla_asyncio(bootstrap: str, topic: str, rate: int, count: int) -> list[float]:
    from ottla import aio

    found: list[float] = []

    async def run() -> None:
        async with aio.Producer(bootstrap, linger_ms=0) as producer:
            await producer.partitions_for(topic)
            for pause in ticks(rate, count):
                await asyncio.sleep(pause)
                value = stamped()
                await producer.send(topic, value, on_delivery=lambda metadata, error, value=value: found.append(age_us(value)))

    asyncio.run(run())
    return found


def produce_confluent(bootstrap: str, topic: str, rate: int, count: int) -> list[float]:
    from confluent_kafka import Producer

    found: list[float] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0})
    producer.list_topics(topic, WAIT_S)
    is_over = threading.Event()

    def poll() -> None:
        while not is_over.is_set():
            producer.poll(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    for pause in ticks(rate, count):
        time.sleep(pause)
        value = stamped()
        producer.produce(topic, value, on_delivery=lambda error, message, value=value: found.append(age_us(value)))
    producer.flush()
    is_over.set()
    thread.join()
    return found


def produce_aiokafka(bootstrap: str, topic: str, rate: int, count: int) -> list[float]:
    from aiokafka import AIOKafkaProducer

    found: list[float] = []

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        await producer.partitions_for(topic)
        for pause in ticks(rate, count):
            await asyncio.sleep(pause)
            value = stamped()
            future = await producer.send(topic, value)
            future.add_done_callback(lambda _, value=value: found.append(age_us(value)))
        await producer.stop()

    asyncio.run(run())
    return found


def produce_kafka_python(bootstrap: str, topic: str, rate: int, count: int) -> list[float]:
    from kafka import KafkaProducer

    found: list[float] = []
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=0)
    producer.partitions_for(topic)
    for pause in ticks(rate, count):
        time.sleep(pause)
        value = stamped()
        producer.send(topic, value).add_callback(lambda _, value=value: found.append(age_us(value)))
    producer.flush()
    producer.close()
    return found


# Callers who wait: each returns the microseconds that `send` and the wait for its result took, for every record


def wait_ottla(bootstrap: str, topic: str, count: int) -> list[float]:
    from ottla import Producer

    found: list[float] = []
    with Producer(bootstrap) as producer:
        for _ in range(count):
            value = stamped()
            producer.send(topic, value).result()
            found.append(age_us(value))
    return found


def wait_ottla_asyncio(bootstrap: str, topic: str, count: int) -> list[float]:
    from ottla import aio

    found: list[float] = []

    async def run() -> None:
        async with aio.Producer(bootstrap) as producer:
            for _ in range(count):
                value = stamped()
                await (await producer.send(topic, value))
                found.append(age_us(value))

    asyncio.run(run())
    return found


def wait_confluent(bootstrap: str, topic: str, count: int) -> list[float]:
    from confluent_kafka import Producer

    found: list[float] = []
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(count):
        value = stamped()
        producer.produce(topic, value)
        producer.flush()
        found.append(age_us(value))
    return found


def wait_aiokafka(bootstrap: str, topic: str, count: int) -> list[float]:
    from aiokafka import AIOKafkaProducer

    found: list[float] = []

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        for _ in range(count):
            value = stamped()
            await producer.send_and_wait(topic, value)
            found.append(age_us(value))
        await producer.stop()

    asyncio.run(run())
    return found


def wait_kafka_python(bootstrap: str, topic: str, count: int) -> list[float]:
    from kafka import KafkaProducer

    found: list[float] = []
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for _ in range(count):
        value = stamped()
        producer.send(topic, value).get(WAIT_S)
        found.append(age_us(value))
    return found


# Consumers: each calls `ready` when it waits for new records, and returns the age of every record


def consume_ottla(bootstrap: str, topic: str, partitions: int, count: int, ready: Callable[[], None]) -> list[float]:
    from ottla import Consumer

    found: list[float] = []
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, partition) for partition in range(partitions)])
        consumer.poll(0.5)
        ready()
        while len(found) < count:
            found += [age_us(record.value) for record in consumer.poll(WAIT_S)]
    return found


def consume_ottla_asyncio(bootstrap: str, topic: str, partitions: int, count: int, ready: Callable[[], None]) -> list[float]:
    from ottla import aio

    found: list[float] = []

    async def run() -> None:
        async with aio.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, partition) for partition in range(partitions)])
            await consumer.poll(0.5)
            ready()
            while len(found) < count:
                found.extend(age_us(record.value) for record in await consumer.poll(WAIT_S))

    asyncio.run(run())
    return found


def consume_confluent(bootstrap: str, topic: str, partitions: int, count: int, ready: Callable[[], None]) -> list[float]:
    from confluent_kafka import Consumer, TopicPartition

    found: list[float] = []
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    consumer.poll(0.5)
    ready()
    while len(found) < count:
        record = consumer.poll(WAIT_S)
        if record is not None and record.error() is None:
            found.append(age_us(record.value()))
    return found


def consume_aiokafka(bootstrap: str, topic: str, partitions: int, count: int, ready: Callable[[], None]) -> list[float]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    found: list[float] = []

    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
        await consumer.getmany(timeout_ms=500)
        ready()
        while len(found) < count:
            found.append(age_us((await consumer.getone()).value))
        await consumer.stop()

    asyncio.run(run())
    return found


def consume_kafka_python(bootstrap: str, topic: str, partitions: int, count: int, ready: Callable[[], None]) -> list[float]:
    from kafka import KafkaConsumer, TopicPartition

    found: list[float] = []
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
    consumer.poll(timeout_ms=500)
    ready()
    while len(found) < count:
        for records in consumer.poll(timeout_ms=int(WAIT_S * 1000)).values():
            found += [age_us(record.value) for record in records]
    return found


WAITERS: dict[str, Callable[[str, str, int], list[float]]] = {
    "Ottla": wait_ottla,
    "Ottla asyncio": wait_ottla_asyncio,
    "confluent-kafka": wait_confluent,
    "aiokafka": wait_aiokafka,
    "kafka-python": wait_kafka_python,
}
PRODUCERS: dict[str, Callable[..., list[float]]] = {
    "Ottla": produce_ottla,
    "Ottla asyncio": produce_ottla_asyncio,
    "confluent-kafka": produce_confluent,
    "aiokafka": produce_aiokafka,
    "kafka-python": produce_kafka_python,
}
CONSUMERS: dict[str, Callable[..., Any]] = {
    "Ottla": consume_ottla,
    "Ottla asyncio": consume_ottla_asyncio,
    "confluent-kafka": consume_confluent,
    "aiokafka": consume_aiokafka,
    "kafka-python": consume_kafka_python,
}
