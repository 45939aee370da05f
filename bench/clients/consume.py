"""Consumers of the same topic, each from its beginning. A function connects and reads the first records, then returns what is
timed: reading `count` records and looking at each value, where the form has values one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bench.clients.job import ConsumeJob as Job
from bench.clients.job import Run

WAIT_S = 10.0


def _ottla(job: Job) -> Any:
    from ottla import Consumer

    consumer: Consumer[Any, Any] = Consumer(job.bootstrap, auto_offset_reset="earliest")
    consumer.assign([(job.topic, partition) for partition in range(job.partitions)])
    while not consumer.poll(WAIT_S, max_records=1):
        pass
    return consumer


def ottla_poll(job: Job) -> Run:
    consumer = _ottla(job)

    def run() -> None:
        left = job.count
        while left > 0:
            records = consumer.poll(WAIT_S)
            for record in records:
                len(record.value)
            left -= len(records)

    return run


def ottla_iterate(job: Job) -> Run:
    consumer = _ottla(job)

    def run() -> None:
        left = job.count
        for record in consumer:
            len(record.value)
            left -= 1
            if left == 0:
                break

    return run


def ottla_batches(job: Job) -> Run:
    consumer = _ottla(job)

    def run() -> None:
        left = job.count
        while left > 0:
            for records in consumer.batches(WAIT_S).values():
                left -= len(records)

    return run


def ottla_arrow(job: Job) -> Run:
    import pyarrow  # noqa: F401  # before the clock starts

    consumer = _ottla(job)

    def run() -> None:
        left = job.count
        while left > 0:
            left -= consumer.consume_arrow(WAIT_S).num_rows

    return run


def ottla_asyncio(job: Job) -> Run:
    from ottla import aio

    loop = asyncio.new_event_loop()
    consumer: aio.Consumer[Any, Any] = aio.Consumer(job.bootstrap, auto_offset_reset="earliest")

    async def start() -> None:
        consumer.assign([(job.topic, partition) for partition in range(job.partitions)])
        while not await consumer.poll(WAIT_S, max_records=1):
            pass

    async def read() -> None:
        left = job.count
        async for record in consumer:
            len(record.value)
            left -= 1
            if left == 0:
                break

    loop.run_until_complete(start())
    return lambda: loop.run_until_complete(read())


def confluent(job: Job) -> Run:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(job.topic, partition, 0) for partition in range(job.partitions)])
    while not consumer.consume(1, WAIT_S):
        pass

    def run() -> None:
        left = job.count
        while left > 0:
            records = consumer.consume(min(left, 500), WAIT_S)  # it waits until it has all of them
            for record in records:
                len(record.value())
            left -= len(records)

    return run


def aiokafka(job: Job) -> Run:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    loop = asyncio.new_event_loop()

    async def start() -> Any:
        consumer = AIOKafkaConsumer(bootstrap_servers=job.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([TopicPartition(job.topic, partition) for partition in range(job.partitions)])
        await consumer.getone()
        return consumer

    consumer = loop.run_until_complete(start())

    async def read() -> None:
        left = job.count
        while left > 0:
            for records in (await consumer.getmany(timeout_ms=int(WAIT_S * 1000), max_records=500)).values():
                for record in records:
                    len(record.value)
                left -= len(records)

    return lambda: loop.run_until_complete(read())


def kafka_python(job: Job) -> Run:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=job.bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(job.topic, partition) for partition in range(job.partitions)])
    while not consumer.poll(timeout_ms=int(WAIT_S * 1000), max_records=1):
        pass

    def run() -> None:
        left = job.count
        while left > 0:
            for records in consumer.poll(timeout_ms=int(WAIT_S * 1000)).values():
                for record in records:
                    len(record.value)
                left -= len(records)

    return run


def raw_protocol(job: Job) -> Run:
    from bench.clients import raw  # late: it imports Ottla, whose memory the other clients must not show

    return raw.consume(job)


USES: dict[str, Callable[[Job], Run]] = {
    "Ottla poll": ottla_poll,
    "Ottla iterate": ottla_iterate,
    "Ottla batches": ottla_batches,
    "Ottla Arrow": ottla_arrow,
    "Ottla asyncio": ottla_asyncio,
    "Ottla poll, pure Python": ottla_poll,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
    "raw protocol": raw_protocol,
}
