"""`Load`: records that Ottla's clients send and read while a test disturbs the cluster, and the check that nothing was lost.

with Load(face, bootstrap, topic, partitions=3) as load:
    load.await_more(100)
    ... kill a broker ...
    load.await_more(100)
# leaving the block ends the sending, waits for the rest and checks: all that was sent was read, once, in order per key
"""

from __future__ import annotations

import threading
from collections import defaultdict
from types import TracebackType
from typing import Any

from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S

QUICK: dict[str, Any] = {
    "reconnect_backoff_max_ms": 200,
    "retry_backoff_max_ms": 200,
    "socket_connection_setup_timeout_ms": 3000,
    "request_timeout_ms": 10_000,
}
"""For clients that lose brokers: they look again soon."""

KEYS = 7
DELIVERY_MS = 150_000
READ_S: float = HANG_S


class Load:
    """A thread that sends numbers with keys, and one that reads them. Both must be without errors to the end."""

    def __init__(
        self,
        face: Faces,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        producer: dict[str, Any] | None = None,
        consumer: dict[str, Any] | None = None,
        group: str | None = None,
    ) -> None:
        sending = {"linger_ms": 2, "batch_size": 600, "delivery_timeout_ms": DELIVERY_MS} | QUICK | (producer or {})
        reading = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100} | QUICK | (consumer or {})
        self.topic = topic
        self.producer = face.producer(bootstrap, **sending)
        self.consumer = face.consumer(bootstrap, group_id=group, **reading)
        self.deliveries: list[Any] = []
        self.found: list[Any] = []
        self._partitions = [(topic, index) for index in range(partitions)]
        self._has_group = group is not None
        self._is_sending = True
        self._is_reading = True
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guard, args=(each,)) for each in (self._send, self._read)]

    def await_more(self, count: int) -> None:
        """Wait until so many further records were sent, stored and read."""
        goal = len(self.found) + count
        await_true(lambda: bool(self._failures) or len(self.found) >= goal, f"{count} more records to be read")
        self._raise()

    def await_sent(self, count: int) -> None:
        """Wait until so many further records were sent; they need not be stored."""
        goal = len(self.deliveries) + count
        await_true(lambda: bool(self._failures) or len(self.deliveries) >= goal, f"{count} more records to be sent")
        self._raise()

    def _guard(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self._failures.append(error)

    def _send(self) -> None:
        pace = threading.Event()
        while self._is_sending:
            number = len(self.deliveries)
            self.deliveries.append(self.producer.send(self.topic, b"%d" % number, key=b"k%d" % (number % KEYS)))
            pace.wait(0.002)

    def _read(self) -> None:
        if self._has_group:
            self.consumer.subscribe([self.topic])
        else:
            self.consumer.assign(self._partitions)
        while self._is_reading:
            self.found += self.consumer.poll(0.1)

    def _raise(self) -> None:
        if self._failures:
            raise self._failures[0]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_sending = False
        self._threads[0].join(HANG_S)
        try:
            if error is None:
                self._check()
        finally:
            self._end_reading()

    def _end_reading(self) -> None:
        self._is_reading = False
        self._threads[1].join(HANG_S)

    def _check(self) -> None:
        self._raise()
        results = [delivery.result(HANG_S) for delivery in self.deliveries]
        await_true(lambda: bool(self._failures) or len(self.found) >= len(results), "all records to be read", READ_S)
        self._end_reading()
        self._raise()
        stored = sum(self.consumer.end_offsets(self._partitions).values())
        assert stored == len(results), f"{len(results)} records were sent, and {stored} are stored"
        read: dict[bytes, list[int]] = defaultdict(list)
        for record in self.found:
            read[record.key].append(int(record.value))
        for index in range(min(KEYS, len(results))):
            assert read[b"k%d" % index] == list(range(index, len(results), KEYS)), f"the records of key k{index}"
        places = {int(record.value): (record.partition, record.offset) for record in self.found}
        assert [(result.partition, result.offset) for result in results] == [places[each] for each in range(len(results))]
