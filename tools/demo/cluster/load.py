"""The demo's producer, which sends numbered records all the while, and the count of what the topic holds afterwards."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tools.demo.processes import DemoFailed

from ottla.client.consumer.sync import Consumer
from ottla.client.producer.sync import Producer
from ottla.ids import TopicPartition

PAUSE_S = 0.002
SETTLE_S = 60.0
POLL_S = 0.5


class Load:
    """Sends the numbers 0, 1, 2 … in turn to the partitions of a topic, with acks=all, in a thread of its own."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self._producer: Producer[bytes, bytes] = Producer(bootstrap_servers, acks="all", linger_ms=2)
        self._topic, self._partitions = topic, partitions
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._is_running = True
        self.sent = 0
        self.acknowledged = 0
        self.failures: list[str] = []
        self.longest_wait_s = 0.0
        """The longest time without an acknowledgement."""
        self._last_s = 0.0

    def start(self) -> None:
        self._last_s = time.monotonic()
        self._thread.start()

    def _run(self) -> None:
        while self._is_running:
            number = self.sent
            try:
                self._producer.send(
                    self._topic, str(number).encode(), partition=number % self._partitions, on_delivery=self._delivered
                )
            except Exception as failure:  # every failed send is shown to the user, whatever it is
                self.failures.append(str(failure))
            self.sent += 1
            time.sleep(PAUSE_S)  # the rate of the load: this thread has nothing to wait for

    def _delivered(self, metadata: object, error: BaseException | None) -> None:
        """On the producer's thread."""
        if error is not None:
            self.failures.append(str(error))
            return
        now_s = time.monotonic()
        self.longest_wait_s = max(self.longest_wait_s, now_s - self._last_s)
        self._last_s = now_s
        self.acknowledged += 1

    def stop(self) -> None:
        """Send what is left, and wait until it is acknowledged."""
        self._is_running = False
        if self._thread.is_alive():
            self._thread.join(SETTLE_S)
        self._producer.flush(SETTLE_S)
        self._producer.close()

    def abandon(self) -> None:
        """End without waiting."""
        self._is_running = False
        self._producer.close(0)


class Found(NamedTuple):
    """What a topic holds, compared with what was sent."""

    records: int
    lost: list[int]
    doubled: list[int]
    is_in_order: bool


def compare(sent: int, partitions: Iterable[list[int]]) -> Found:
    """`partitions`: the numbers in each, in the order of their offsets."""
    held = list(partitions)
    counts = Counter(number for numbers in held for number in numbers)
    return Found(
        counts.total(),
        [number for number in range(sent) if number not in counts],
        sorted(number for number, count in counts.items() if count > 1),
        all(numbers == sorted(numbers) for numbers in held),
    )


def read_all(bootstrap_servers: str, topic: str, partitions: int) -> list[list[int]]:
    """The numbers in each partition, read by a consumer from the beginning to the end."""
    places = [TopicPartition(topic, index) for index in range(partitions)]
    held: list[list[int]] = [[] for _ in places]
    reader: Consumer[bytes, bytes] = Consumer(bootstrap_servers, auto_offset_reset="earliest", enable_auto_commit=False)
    with reader as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        deadline_s = time.monotonic() + SETTLE_S
        while any(consumer.position(each) < ends[each] for each in places):
            if time.monotonic() > deadline_s:
                raise DemoFailed(f"the topic could not be read within {SETTLE_S:.0f} s")
            for record in consumer.poll(POLL_S):
                held[record.partition].append(int(record.value))
    return held
