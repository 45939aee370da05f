"""Programs with transactions: each writes a record to every partition and an offset of a group, and commits or aborts."""

from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import KafkaException
from tests.support.peers.load import QUICK
from tests.support.recorded.confluent_transactions import ConfluentTransactions
from tests.support.servers.kafka_server import HANG_S

import ottla
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.sim.histories.history import History, Send, Transaction

ABORTED_EVERY = 5
PAUSE_S = 0.05
TIMEOUT_MS = 300_000
"""Far above what a transaction takes on a busy machine: its producer would be fenced."""


class RecordedProgram:
    """A thread with a producer of one transactional id. A producer that fails is replaced, as a program would be.

    `group` is its own: its committed offset is the number of the last transaction that was committed. `library` is "ottla" or
    "confluent", which has no group: librdkafka's send_offsets_to_transaction hangs when the group's coordinator leaves the
    metadata (confluentinc/librdkafka#5511). `pause_s` is between two transactions.
    """

    def __init__(
        self,
        history: History,
        name: str,
        bootstrap: str,
        topic: str,
        partitions: int,
        library: str = "ottla",
        pause_s: float = PAUSE_S,
    ) -> None:
        self.name = name
        self.group = f"{name}-offsets" if library == "ottla" else None
        self.committed = 0
        self.failures: list[str] = []
        self.replaced: list[str] = []
        """Why producers were replaced."""
        self._history = history
        self._bootstrap = bootstrap
        self._library = library
        self._pause_s = pause_s
        self._places = [TopicPartition(topic, index) for index in range(partitions)]
        self._number = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._guard, name=name)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(HANG_S)
        if self._thread.is_alive():
            self.failures.append(f"{self.name} hangs in a transaction since {HANG_S} s")

    def _guard(self) -> None:
        try:
            while not self._is_over.is_set():
                self._run()
        except Exception as failure:
            self.failures.append(f"{self.name}: {failure!r}")

    def _run(self) -> None:
        """Run transactions until the producer fails or all is over."""
        producer = self._producer()
        try:
            producer.init_transactions()
            while not self._is_over.wait(self._pause_s):
                self._transact(producer)
        except (KafkaError, KafkaException) as failure:
            self.replaced.append(repr(failure))
        finally:
            producer.close(5)

    def _producer(self) -> Any:
        if self._library == "confluent":
            return ConfluentTransactions(self._bootstrap, self.name, TIMEOUT_MS)
        return ottla.Producer(
            self._bootstrap,
            transactional_id=self.name,
            transaction_timeout_ms=TIMEOUT_MS,
            max_block_ms=120_000,
            delivery_timeout_ms=120_000,
            **QUICK,
        )

    def _transact(self, producer: Any) -> None:
        self._number += 1
        transaction = self._history.transaction(self.name, f"{self.name}-{self._number}")
        producer.begin_transaction()
        deliveries: list[tuple[Send, Any]] = []
        for place in self._places:
            send = self._history.send(self.name, place, f"{transaction.name}-{place.partition}", transaction)
            deliveries.append((send, producer.send(*place[:1], send.value.encode(), partition=place.partition)))
        offsets = {self._places[0]: self._number} if self.group else {}
        if self.group:
            producer.send_offsets_to_transaction(offsets, self.group)
        for send, delivery in deliveries:
            send.stored(delivery.result(120).offset)
        self._end(producer, transaction, offsets)

    def _end(self, producer: Any, transaction: Transaction, offsets: dict[TopicPartition, int]) -> None:
        if self._number % ABORTED_EVERY == 0:
            transaction.asks("abort")
            producer.abort_transaction()
            transaction.ended()
            return
        commit = self._history.commits(self.group, offsets) if self.group else None
        transaction.asks("commit")
        producer.commit_transaction()
        transaction.ended()
        if commit is not None:
            commit.acknowledged()
        self.committed += 1
