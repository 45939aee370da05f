"""One worker of `exactly_once_load`: reads records in a group, writes them on and commits, each time in one transaction.

    python -m tests.support.exactly_once_worker BOOTSTRAP TRANSACTIONAL_ID PROTOCOL

Whatever goes wrong ends it; whoever started it starts it again. So does a step that takes too long: after a broker's restart
librdkafka may wait forever to send its offsets, with no request under way.
"""

import signal
import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

INPUT, OUTPUT, GROUP = "eo-input", "eo-output", "eo-group"
SESSION_MS = 2_000
STEP_S = 30
HANGING_S = 12
BATCH_RECORDS = 50


def run(bootstrap: str, transactional_id: str, protocol: str) -> None:
    producer: Any = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 200,
            "linger.ms": 1,
            "log_level": 0,
        }
    )
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 200}
    consumer: Any = Consumer(settings)
    producer.init_transactions(STEP_S)
    consumer.subscribe([INPUT])
    while True:
        signal.alarm(HANGING_S)
        received = consumer.consume(BATCH_RECORDS, 0.2)
        if any(message.error() is not None and message.error().fatal() for message in received):
            sys.exit("the consumer cannot go on")
        messages = [message for message in received if message.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        positions: dict[int, int] = {}
        for message in messages:
            producer.produce(OUTPUT, message.value(), partition=message.partition())
            positions[message.partition()] = message.offset() + 1
        offsets = [TopicPartition(INPUT, partition, offset) for partition, offset in positions.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), STEP_S)
        producer.commit_transaction(STEP_S)


if __name__ == "__main__":
    run(*sys.argv[1:])
