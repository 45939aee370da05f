"""Idempotent producers of several libraries that send numbered records in the background, and record each in a history."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from tests.support.peers.load import QUICK
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.kafka_server import HANG_S

import ottla
from ottla.ids import TopicPartition
from ottla.sim.histories.history import History, Send

PAUSE_S = 0.004
DELIVERY_MS = 150_000


class RecordedProducer(Protocol):
    """A producer that sends in the background until `stop`, which returns when every record is delivered or has failed."""

    name: str
    failures: list[str]

    @property
    def stored(self) -> int:
        """How many records it was told are stored."""
        ...

    def stop(self) -> None: ...


class _Sending:
    """A thread that sends numbered records. Subclasses have a producer."""

    def __init__(self, history: History, name: str, topic: str, partitions: int) -> None:
        self.name = name
        self.failures: list[str] = []
        self.sends: list[Send] = []
        self.stored = 0
        self._history = history
        self._topic = topic
        self._partitions = partitions
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over.wait(PAUSE_S):
                number = len(self.sends)
                place = TopicPartition(self._topic, number % self._partitions)
                send = self._history.send(self.name, place, f"{self.name}-{number}")
                self.sends.append(send)
                self._send(send, place.partition, send.value.encode())
            self._finish()
        except Exception as failure:
            self.failures.append(repr(failure))

    def _send(self, send: Send, partition: int, value: bytes) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError

    def _delivered(self, send: Send, offset: int | None, error: object) -> None:
        if error is not None:
            self.failures.append(f"{send.value}: {error}")
        else:
            send.stored(offset)
            self.stored += 1

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(HANG_S)
        if self._thread.is_alive():
            self.failures.append(f"{self.name} was still sending after {HANG_S} s")


class OttlaProducer(_Sending):
    """Ottla's synchronous producer."""

    def __init__(self, history: History, name: str, bootstrap: str, topic: str, partitions: int, **settings: Any) -> None:
        chosen: dict[str, Any] = {"linger_ms": 2, "acks": "all", "delivery_timeout_ms": DELIVERY_MS, **QUICK, **settings}
        self._producer = ottla.Producer(bootstrap, **chosen)
        super().__init__(history, name, topic, partitions)

    def _send(self, send: Send, partition: int, value: bytes) -> None:
        self._producer.send(
            self._topic,
            value,
            partition=partition,
            on_delivery=lambda made, error: self._delivered(send, None if made is None else made.offset, error),
        )

    def _finish(self) -> None:
        self._producer.close()


class ConfluentProducer(_Sending):
    """librdkafka's idempotent producer."""

    def __init__(self, history: History, name: str, bootstrap: str, topic: str, partitions: int, **settings: Any) -> None:
        from confluent_kafka import Producer

        own = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.timeout.ms": DELIVERY_MS,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._producer = Producer(own | settings)
        super().__init__(history, name, topic, partitions)

    def _send(self, send: Send, partition: int, value: bytes) -> None:
        # librdkafka knows no offset if the answer was lost and a later batch was acknowledged.
        def delivered(error: Any, message: Any) -> None:
            self._delivered(send, message.offset(), error)

        self._producer.produce(self._topic, value, partition=partition, on_delivery=delivered)
        self._producer.poll(0)

    def _finish(self) -> None:
        left = self._producer.flush(HANG_S)
        if left:
            self.failures.append(f"{left} records of {self.name} were not delivered")


class JavaProducer:
    """Kafka's own idempotent producer in a process (SteadyProducer.java). Its events join the history when it is stopped."""

    def __init__(
        self, history: History, name: str, bootstrap: str, topic: str, partitions: int, programs: JavaPrograms, **settings: Any
    ) -> None:
        own = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 2,
            "delivery.timeout.ms": DELIVERY_MS,
            "request.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 500,
        } | settings
        self.name = name
        self.failures: list[str] = []
        self._history = history
        self._topic = topic
        self._partitions = partitions
        words = [f"{key}={value}" for key, value in own.items()]
        self._process = programs.start("SteadyProducer", name, topic, partitions, int(PAUSE_S * 1000), *words)
        self._is_stopped = False
        self._position = self._stored = 0

    @property
    def stored(self) -> int:
        new = self._process.printed(self._position)  # only what is new: the output grows to many megabytes
        new = new[: new.rfind(b"\n") + 1]
        self._position += len(new)
        self._stored += new.count(b"stored\t")
        return self._stored

    def stop(self) -> None:
        if self._is_stopped:
            return
        self._is_stopped = True
        code = self._process.terminate()
        lines = [line.split("\t") for line in self._process.text().splitlines() if line.count("\t") == 3]
        if not lines or lines[-1][0] != "ended":
            self.failures.append(f"{self.name} ended with {code}:\n{self._process.tail()}")
        sends: dict[int, Send] = {}
        for event, number_text, nanos, more in lines:
            number, at_s = int(number_text), int(nanos) / 1e9  # the clock of time.monotonic
            if event == "sent":
                place = TopicPartition(self._topic, number % self._partitions)
                sends[number] = Send(self.name, place, f"{self.name}-{number}", at_s)
            elif event == "stored":
                sends[number].offset, sends[number].answered_s = int(more), at_s
            elif event == "failed":
                self.failures.append(f"{self.name}-{number}: {more}")
        self._history.events.extend(sends.values())
