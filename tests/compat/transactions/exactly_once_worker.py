"""One worker of `exactly_once_load`: reads records in a group, writes them on and commits, each time in one transaction.

    python -m tests.compat.transactions.exactly_once_worker BOOTSTRAP TRANSACTIONAL_ID PROTOCOL

Any error ends it, and `Workers` starts it again. Two more things end it:

- A step that takes too long. After a broker's restart librdkafka may wait for ever to send its offsets, with no request under
  way.
- A consumer that gets no records although every partition has more: librdkafka does not repeat a fetch of committed offsets
  that fails during a rebalance. The worker prints the consumer's state and exits with `STARVED`, which `Workers` counts.
- A consumer that does not find its offsets, although the load committed offset 0 of every partition first. If a fetch of
  committed offsets is answered with UNSTABLE_OFFSET_COMMIT while another partition is revoked, librdkafka 2.16 takes the offset
  as missing. With auto.offset.reset=earliest it would read the partition from its beginning, and write everything twice.
"""

import signal
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

INPUT, OUTPUT, GROUP = "eo-input", "eo-output", "eo-group"
SESSION_MS = 2_000
STEP_S = 30
HANGING_S = 12
STARVING_S = 40
"""Longer than it takes to evict the previous owner, to start the broker again, and to abort open transactions."""
STARVED = 3
"""The exit code of a worker whose consumer got no records for `STARVING_S`."""
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
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 200}
    known = ["nothing"]
    settings |= {"statistics.interval.ms": 2_000, "stats_cb": lambda text: known.__setitem__(0, text)}
    consumer: Any = Consumer(settings)
    producer.init_transactions(STEP_S)
    consumer.subscribe([INPUT])
    fed_s = time.monotonic()
    while True:
        signal.alarm(HANGING_S)
        messages = consumer.consume(BATCH_RECORDS, 0.2)
        errors = [str(message.error()) for message in messages if message.error() is not None]
        if errors:
            sys.exit(f"the consumer cannot go on: {errors}")
        if not messages:
            if time.monotonic() > fed_s + STARVING_S:
                print(f"handed nothing for {STARVING_S} s. What the consumer knows: {known[0]}", file=sys.stderr)
                sys.exit(STARVED)
            continue
        fed_s = time.monotonic()
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
