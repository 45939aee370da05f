"""Producers, each used as its documentation says: every record's delivery result is awaited.

A function connects and stores one record, then returns what is timed: sending `count` records until each is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bench.clients.job import ProduceJob as Job
from bench.clients.job import Run


def ottla_send(job: Job) -> Run:
    from ottla import Producer

    producer: Producer[bytes, bytes] = Producer(job.bootstrap)
    producer.send(job.topic, job.value).result()

    def run() -> None:
        send, topic, value = producer.send, job.topic, job.value
        if job.keys is None:
            handles = [send(topic, value) for _ in range(job.count)]
        else:
            handles = [send(topic, value, key) for key in job.keys]
        producer.flush()
        for handle in handles:
            handle.result()

    return run


def ottla_send_many(job: Job) -> Run:
    from ottla import Producer

    producer: Producer[bytes, bytes] = Producer(job.bootstrap)
    producer.send(job.topic, job.value).result()
    values = [job.value] * job.count

    def run() -> None:
        deliveries = producer.send_many(job.topic, values, job.keys)
        producer.flush()
        assert deliveries.wait() == job.count

    return run


def ottla_arrow(job: Job) -> Run:
    import pyarrow

    from ottla import Producer

    producer: Producer[bytes, bytes] = Producer(job.bootstrap)
    producer.send(job.topic, job.value).result()
    columns = {"value": pyarrow.array([job.value] * job.count, pyarrow.large_binary())}
    if job.keys is not None:
        columns["key"] = pyarrow.array(job.keys, pyarrow.binary())
    table = pyarrow.table(columns)

    def run() -> None:
        deliveries = producer.send_many(job.topic, table)
        producer.flush()
        assert deliveries.wait() == job.count

    return run


def ottla_asyncio(job: Job) -> Run:
    from ottla import aio

    loop = asyncio.new_event_loop()
    producer: aio.Producer[bytes, bytes] = aio.Producer(job.bootstrap)

    async def start() -> None:
        await (await producer.send(job.topic, job.value))

    async def send() -> None:
        keys = job.keys
        handles = [await producer.send(job.topic, job.value, None if keys is None else keys[n]) for n in range(job.count)]
        for handle in handles:
            await handle

    loop.run_until_complete(start())
    return lambda: loop.run_until_complete(send())


def confluent(job: Job) -> Run:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": job.bootstrap, "enable.idempotence": True, "queue.buffering.max.messages": 1_000_000}
    )
    stored = 0

    def delivered(error: object, message: object) -> None:
        nonlocal stored
        if error is not None:
            raise SystemExit(f"confluent-kafka: {error}")
        stored += 1

    producer.produce(job.topic, job.value, on_delivery=delivered)
    producer.flush()

    def run() -> None:
        for number in range(job.count):
            key = None if job.keys is None else job.keys[number]
            while True:
                try:
                    producer.produce(job.topic, job.value, key, on_delivery=delivered)
                except BufferError:
                    producer.poll(0.01)
                else:
                    break
            if number % 1000 == 0:
                producer.poll(0)
        producer.flush()
        assert stored == job.count + 1

    return run


def aiokafka(job: Job) -> Run:
    from aiokafka import AIOKafkaProducer

    loop = asyncio.new_event_loop()

    async def start() -> Any:
        producer = AIOKafkaProducer(bootstrap_servers=job.bootstrap, enable_idempotence=True, linger_ms=5)
        await producer.start()
        await producer.send_and_wait(job.topic, job.value)
        return producer

    producer = loop.run_until_complete(start())

    async def send() -> None:
        keys = job.keys
        futures = [await producer.send(job.topic, job.value, None if keys is None else keys[n]) for n in range(job.count)]
        for future in futures:
            await future

    return lambda: loop.run_until_complete(send())


def kafka_python(job: Job) -> Run:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=job.bootstrap, linger_ms=5)
    producer.send(job.topic, job.value).get(60)

    def run() -> None:
        keys = job.keys
        futures = [producer.send(job.topic, job.value, None if keys is None else keys[n]) for n in range(job.count)]
        producer.flush()
        for future in futures:
            future.get(60)

    return run


def raw_protocol(job: Job) -> Run:
    from bench.clients import raw  # late: it imports Ottla, whose memory the other clients must not show

    return raw.produce(job)


USES: dict[str, Callable[[Job], Run]] = {
    "Ottla send": ottla_send,
    "Ottla send_many": ottla_send_many,
    "Ottla Arrow": ottla_arrow,
    "Ottla asyncio": ottla_asyncio,
    "Ottla send, pure Python": ottla_send,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
    "raw protocol": raw_protocol,
}
