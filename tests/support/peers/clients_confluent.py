"""confluent-kafka (librdkafka) behind the interface of `tests.support.peers.clients`."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from tests.support.peers.clients import ConsumerOptions, Incoming, Outgoing, ProducerOptions, Receipt, Refused

TIMESTAMP_TYPES = {1: 0, 2: 1}
"""librdkafka's numbers for create time and append time → Kafka's."""


class Confluent:
    """Producer and consumer of confluent-kafka."""

    name = "confluent"

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Outgoing], options: ProducerOptions
    ) -> list[Receipt | Refused]:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "acks": options.acks,
            "enable.idempotence": options.idempotent,
            "compression.type": options.codec,
            "linger.ms": options.linger_ms,
            "batch.size": options.batch_bytes,
            "message.max.bytes": options.request_bytes_max,
            "message.timeout.ms": int(options.timeout_s * 1000),
            "topic.metadata.propagation.max.ms": 1000,
            "log_level": 0,
        }
        if options.partitioner:
            settings["partitioner"] = options.partitioner
        producer = Producer(settings)
        outcomes: list[Receipt | Refused | None] = [None] * len(records)
        for index, record in enumerate(records):
            self._send(producer, topic, record, outcomes, index)
            producer.poll(0)
        left = producer.flush(options.timeout_s + 5)
        assert left == 0, f"{left} records were neither delivered nor refused"
        return [outcome for outcome in outcomes if outcome is not None]

    def _send(self, producer: Any, topic: str, record: Outgoing, outcomes: list[Receipt | Refused | None], index: int) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            outcomes[index] = (
                Refused(error.code(), error.str()) if error is not None else Receipt(message.partition(), message.offset())
            )

        extra: dict[str, Any] = {}
        if record.partition is not None:
            extra["partition"] = record.partition
        if record.timestamp_ms is not None:
            extra["timestamp"] = record.timestamp_ms
        try:
            producer.produce(
                topic, record.value, record.key, headers=list(record.headers) or None, on_delivery=delivered, **extra
            )
        except KafkaException as failure:
            error = failure.args[0]
            outcomes[index] = Refused(error.code(), error.str())

    def consumer(self, bootstrap: str, options: ConsumerOptions) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused: partitions are assigned",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": options.isolation,
                "fetch.wait.max.ms": options.wait_ms_max,
                "fetch.min.bytes": options.bytes_min,
                "fetch.max.bytes": options.bytes_max,
                "max.partition.fetch.bytes": options.partition_bytes_max,
                "message.max.bytes": min(options.bytes_max, 1_000_000),
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int, count: int, options: ConsumerOptions
    ) -> list[Incoming]:
        consumer = self.consumer(bootstrap, options)
        offset = {-2: OFFSET_BEGINNING, -1: OFFSET_END}.get(start, start)
        rows: list[Incoming] = []
        try:
            consumer.assign([TopicPartition(topic, number, offset) for number in partitions])
            deadline = time.monotonic() + options.timeout_s
            while len(rows) < count and (left := deadline - time.monotonic()) > 0:
                for message in consumer.consume(count - len(rows), min(left, 0.2)):
                    error = message.error()
                    if error is not None:
                        raise KafkaException(error)
                    rows.append(incoming(message))
        finally:
            consumer.close()
        return rows

    def offsets_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = self.consumer(bootstrap, ConsumerOptions())
        try:
            (found,) = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp_ms)], timeout=60)
        finally:
            consumer.close()
        if found.error is not None:
            raise KafkaException(found.error)
        return None if found.offset == OFFSET_END else int(found.offset)

    def ends(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        consumer = self.consumer(bootstrap, ConsumerOptions())
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60, cached=False)
        finally:
            consumer.close()
        return int(low), int(high)


def incoming(message: Message) -> Incoming:
    """A message of confluent-kafka as a row."""
    kind, timestamp_ms = message.timestamp()
    return Incoming(
        message.partition(),
        message.offset(),
        message.value(),
        message.key(),
        timestamp_ms,
        TIMESTAMP_TYPES.get(kind, -1),
        tuple(message.headers() or ()),
    )
