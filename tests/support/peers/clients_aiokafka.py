"""aiokafka behind the interface of `tests.support.peers.clients`: every call runs its own event loop."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from tests.support.peers.clients import ConsumerOptions, Incoming, Outgoing, ProducerOptions, Receipt, Refused
from tests.support.peers.clients_kafka_python import incoming


class AioKafka:
    """Producer and consumer of aiokafka."""

    name = "aiokafka"

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Outgoing], options: ProducerOptions
    ) -> list[Receipt | Refused]:
        return asyncio.run(self._produce(bootstrap, topic, records, options))

    async def _produce(
        self, bootstrap: str, topic: str, records: Sequence[Outgoing], options: ProducerOptions
    ) -> list[Receipt | Refused]:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks=options.acks,
            enable_idempotence=options.idempotent,
            compression_type=None if options.codec == "none" else options.codec,
            linger_ms=options.linger_ms,
            max_batch_size=options.batch_bytes,
            max_request_size=options.request_bytes_max,
            request_timeout_ms=int(options.timeout_s * 1000),
        )
        await producer.start()
        try:
            futures = [await self._send(producer, topic, record) for record in records]
            return [await self._outcome(future) for future in futures]
        finally:
            await producer.stop()

    async def _send(self, producer: Any, topic: str, record: Outgoing) -> Any:
        try:
            return await producer.send(
                topic,
                record.value,
                record.key,
                record.partition,
                record.timestamp_ms,
                list(record.headers) or None,
            )
        except KafkaError as failure:
            return failure

    async def _outcome(self, future: Any) -> Receipt | Refused:
        try:
            if isinstance(future, KafkaError):
                raise future
            done = await future
        except KafkaError as failure:
            return Refused(getattr(failure, "errno", -1000), repr(failure))
        return Receipt(-1, -1) if done is None else Receipt(done.partition, done.offset)

    def consumer(self, bootstrap: str, options: ConsumerOptions) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            isolation_level=options.isolation,
            fetch_max_wait_ms=options.wait_ms_max,
            fetch_min_bytes=options.bytes_min,
            fetch_max_bytes=options.bytes_max,
            max_partition_fetch_bytes=options.partition_bytes_max,
            auto_offset_reset="none",
        )

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int, count: int, options: ConsumerOptions
    ) -> list[Incoming]:
        return asyncio.run(self._consume(bootstrap, topic, partitions, start, count, options))

    async def _consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int, count: int, options: ConsumerOptions
    ) -> list[Incoming]:
        consumer = self.consumer(bootstrap, options)
        assigned = [TopicPartition(topic, number) for number in partitions]
        rows: list[Incoming] = []
        await consumer.start()
        try:
            consumer.assign(assigned)
            if start == -2:
                await consumer.seek_to_beginning(*assigned)
            elif start == -1:
                await consumer.seek_to_end(*assigned)
            else:
                for partition in assigned:
                    consumer.seek(partition, start)
            deadline = time.monotonic() + options.timeout_s
            while len(rows) < count and (left := deadline - time.monotonic()) > 0:
                polled = await consumer.getmany(timeout_ms=int(min(left, 0.2) * 1000), max_records=count - len(rows))
                rows += [incoming(record) for records in polled.values() for record in records]
        finally:
            await consumer.stop()
        return rows

    def offsets_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        async def ask(consumer: Any, wanted: TopicPartition) -> int | None:
            (answer,) = (await consumer.offsets_for_times({wanted: timestamp_ms})).values()
            return None if answer is None else int(answer.offset)

        return asyncio.run(self._with_consumer(bootstrap, topic, partition, ask))

    def ends(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        async def ask(consumer: Any, wanted: TopicPartition) -> tuple[int, int]:
            first = await consumer.beginning_offsets([wanted])
            return first[wanted], (await consumer.end_offsets([wanted]))[wanted]

        return asyncio.run(self._with_consumer(bootstrap, topic, partition, ask))

    async def _with_consumer(self, bootstrap: str, topic: str, partition: int, ask: Any) -> Any:
        consumer = self.consumer(bootstrap, ConsumerOptions())
        await consumer.start()
        try:
            return await ask(consumer, TopicPartition(topic, partition))
        finally:
            await consumer.stop()
