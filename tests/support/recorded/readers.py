"""Consumers of several libraries that read a topic from its start in the background, and record each poll in a history."""

from __future__ import annotations

import threading
from typing import Any

from tests.support.peers.load import QUICK
from tests.support.servers.kafka_server import HANG_S

import ottla
from ottla.ids import TopicPartition
from ottla.sim.histories.history import History, Seen


class Reader:
    """A thread that reads all partitions from their start. Subclasses have a consumer."""

    def __init__(self, history: History, name: str, topic: str, partitions: int, is_committed: bool) -> None:
        self.name = name
        self.failures: list[str] = []
        self.values: set[str] = set()
        self._history = history
        self._is_committed = is_committed
        self._places = [TopicPartition(topic, index) for index in range(partitions)]
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over:
                records = self._poll()
                if records:
                    self._history.polled(self.name, records, is_committed=self._is_committed)
                    self.values.update(record.value for record in records)
            self._close()
        except Exception as failure:
            self.failures.append(f"{self.name}: {failure!r}")

    def _poll(self) -> list[Seen]:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self._is_over = True
        self._thread.join(HANG_S)
        if self._thread.is_alive():
            self.failures.append(f"{self.name} was still reading after {HANG_S} s")


class OttlaReader(Reader):
    """Ottla's synchronous consumer, without a group."""

    def __init__(
        self, history: History, name: str, bootstrap: str, topic: str, partitions: int, is_committed: bool, **settings: Any
    ) -> None:
        own: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **QUICK, **settings}
        isolation = "read_committed" if is_committed else "read_uncommitted"
        self._consumer = ottla.Consumer(bootstrap, group_id=None, isolation_level=isolation, **own)
        self._consumer.assign([(topic, index) for index in range(partitions)])
        super().__init__(history, name, topic, partitions, is_committed)

    def _poll(self) -> list[Seen]:
        found = self._consumer.poll(0.1)
        return [Seen(TopicPartition(each.topic, each.partition), each.offset, str(each.value, "utf-8")) for each in found]

    def _close(self) -> None:
        self._consumer.close()


class ConfluentReader(Reader):
    """librdkafka's consumer, without a group."""

    def __init__(
        self, history: History, name: str, bootstrap: str, topic: str, partitions: int, is_committed: bool, **settings: Any
    ) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer
        from confluent_kafka import TopicPartition as Place

        own = {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if is_committed else "read_uncommitted",
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._consumer = Consumer(own | settings)
        self._consumer.assign([Place(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        super().__init__(history, name, topic, partitions, is_committed)

    def _poll(self) -> list[Seen]:
        return [
            Seen(
                TopicPartition(each.topic() or "", each.partition() or 0), each.offset() or 0, str(each.value() or b"", "utf-8")
            )
            for each in self._consumer.consume(500, 0.1)
            if each.error() is None
        ]

    def _close(self) -> None:
        self._consumer.close()
