"""librdkafka's transactional producer with the methods of Ottla's, as far as `RecordedProgram` uses them.

librdkafka answers some failures of a transaction's end with an error that asks to be tried again: the same call is repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer

CALL_S = 120.0


class Stored(NamedTuple):
    """Where a record was stored."""

    offset: int


class Delivery:
    """A record that was sent; `result` waits until it is stored."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._offset: int | None = None
        self._error: Any = None

    def answered(self, error: Any, message: Any) -> None:
        self._error, self._offset = error, message.offset()

    def result(self, timeout_s: float) -> Stored:
        deadline_s = time.monotonic() + timeout_s
        while self._offset is None and self._error is None:
            assert time.monotonic() < deadline_s, f"librdkafka said nothing about a record in {timeout_s} s"
            self._producer.poll(0.1)
        if self._error is not None or self._offset is None:
            raise KafkaException(self._error)
        return Stored(self._offset)


class ConfluentTransactions:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        own = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 2,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._producer = Producer(own)

    def init_transactions(self) -> None:
        self._again(lambda: self._producer.init_transactions(CALL_S))

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int) -> Delivery:
        delivery = Delivery(self._producer)
        self._producer.produce(topic, value, partition=partition, on_delivery=delivery.answered)
        return delivery

    def commit_transaction(self) -> None:
        self._again(lambda: self._producer.commit_transaction(CALL_S))

    def abort_transaction(self) -> None:
        self._again(lambda: self._producer.abort_transaction(CALL_S))

    def close(self, timeout_s: float) -> None:
        """Drop what is left: a failed producer's transaction is aborted by its successor."""
        self._producer.purge()
        self._producer.flush(timeout_s)

    def _again(self, call: Callable[[], object]) -> None:
        deadline_s = time.monotonic() + CALL_S
        while True:
            try:
                call()
                return
            except KafkaException as failure:
                if not failure.args[0].retriable() or time.monotonic() > deadline_s:
                    raise
