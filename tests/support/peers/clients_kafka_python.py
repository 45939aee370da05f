"""kafka-python behind the interface of `tests.support.peers.clients`."""

import time
from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from tests.support.peers.clients import ConsumerOptions, Incoming, Outgoing, ProducerOptions, Receipt, Refused


class KafkaPython:
    """Producer and consumer of kafka-python."""

    name = "kafka-python"

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Outgoing], options: ProducerOptions
    ) -> list[Receipt | Refused]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks=options.acks,
            enable_idempotence=options.idempotent,
            compression_type=None if options.codec == "none" else options.codec,
            linger_ms=options.linger_ms,
            batch_size=options.batch_bytes,
            max_request_size=options.request_bytes_max,
            max_block_ms=int(options.timeout_s * 1000),
            request_timeout_ms=int(options.timeout_s * 1000) // 2,
            delivery_timeout_ms=int(options.timeout_s * 1000),
        )
        try:
            futures = [self._send(producer, topic, record) for record in records]
            return [self._outcome(future, options.timeout_s) for future in futures]
        finally:
            producer.close(timeout=5)

    def _send(self, producer: Any, topic: str, record: Outgoing) -> Any:
        try:
            return producer.send(
                topic, record.value, record.key, list(record.headers) or None, record.partition, record.timestamp_ms
            )
        except KafkaError as failure:
            return failure

    def _outcome(self, future: Any, timeout_s: float) -> Receipt | Refused:
        try:
            if isinstance(future, KafkaError):
                raise future
            done = future.get(timeout_s)
        except KafkaError as failure:
            return Refused(failure.errno, repr(failure))
        return Receipt(done.partition, done.offset)

    def consumer(self, bootstrap: str, options: ConsumerOptions) -> Any:
        return KafkaConsumer(
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
        consumer = self.consumer(bootstrap, options)
        assigned = [TopicPartition(topic, number) for number in partitions]
        rows: list[Incoming] = []
        try:
            consumer.assign(assigned)
            for partition in assigned:
                if start == -2:
                    consumer.seek_to_beginning(partition)
                elif start == -1:
                    consumer.seek_to_end(partition)
                else:
                    consumer.seek(partition, start)
            deadline = time.monotonic() + options.timeout_s
            while len(rows) < count and (left := deadline - time.monotonic()) > 0:
                polled = consumer.poll(int(min(left, 0.2) * 1000), max_records=count - len(rows))
                rows += [incoming(record) for records in polled.values() for record in records]
        finally:
            consumer.close()
        return rows

    def offsets_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = self.consumer(bootstrap, ConsumerOptions())
        try:
            found = consumer.offsets_for_times({TopicPartition(topic, partition): timestamp_ms})
        finally:
            consumer.close()
        (answer,) = found.values()
        return None if answer is None or answer.offset < 0 else int(answer.offset)

    def ends(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        consumer = self.consumer(bootstrap, ConsumerOptions())
        wanted = TopicPartition(topic, partition)
        try:
            return consumer.beginning_offsets([wanted])[wanted], consumer.end_offsets([wanted])[wanted]
        finally:
            consumer.close()


def incoming(record: Any) -> Incoming:
    """A record of kafka-python (or of aiokafka, whose shape is the same) as a row."""
    headers = tuple((key, value) for key, value in record.headers or ())
    return Incoming(record.partition, record.offset, record.value, record.key, record.timestamp, record.timestamp_type, headers)
