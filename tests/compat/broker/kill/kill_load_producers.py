"""Producers that outlive the server they write to: one of confluent-kafka, one that sends plain requests.

Both are idempotent and number their records; both remember what was acknowledged, at which offset. They run in threads of their
own until `finish`, which waits until all that was sent is acknowledged.
"""

import random
import threading
import time
from collections import deque
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message, Producer
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient

from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

RECORD_BYTES = 600
FINISH_S_MAX = 60
PAUSE_S = 0.003
"""The pause after some twenty records: enough for a roll every second, and a log small enough to be read whole at the end."""
RECORDS_PER_PAUSE = 20
RETRIABLE = {3, 5, 6, 7, 14, 19}
DUPLICATE_SEQUENCE = 46


class Load(Protocol):
    """The interface of a producer in a run."""

    problem: str | None

    @property
    def acknowledged_count(self) -> int: ...

    def start(self) -> None: ...

    def finish(self) -> None:
        """Send no more, wait for all responses, end."""
        ...

    def stop(self) -> None:
        """End at once. Does nothing if it has ended."""
        ...

    def sent_to(self, partition: int) -> int:
        """How many records were sent to a partition."""
        ...

    def highest_offset(self, partition: int) -> int:
        """The last offset of the partition that was acknowledged to this producer; -1 for none."""
        ...

    def compare(self, found: dict[int, list[bytes]]) -> list[str]:
        """Problems with the records found in the partitions' logs."""
        ...


def value_of(name: str, number: int) -> bytes:
    """The record `number` of a producer."""
    return f"{name}:{number}:".encode().ljust(RECORD_BYTES, b".")


def check(name: str, partition: int, sent: int, acknowledged: dict[int, int], found: list[bytes]) -> list[str]:
    """Problems, unless every record is there once, in order, at its acknowledged offset (`acknowledged`: number → offset)."""
    problems = []
    numbers = [int(value.split(b":")[1]) for value in found if value.startswith(f"{name}:".encode())]
    if numbers != list(range(sent)):
        wrong = next((at for at, number in enumerate(numbers) if number != at), len(numbers))
        problems.append(
            f"{name} sent {sent} records to partition {partition}, {len(numbers)} are there; the first wrong is at {wrong}: "
            f"{numbers[max(0, wrong - 3) : wrong + 5]}"
        )
    for number, offset in acknowledged.items():
        if offset >= len(found) or found[offset] != value_of(name, number):
            problems.append(f"{name}'s record {number} was acknowledged at {offset} of partition {partition}, and is not there")
            break
    return problems


class ConfluentLoad:
    """librdkafka's idempotent producer, to several partitions in turn."""

    def __init__(self, bootstrap: str, topic: str, name: str, partitions: list[int], in_flight_max: int) -> None:
        self.problem: str | None = None
        self._topic, self._name, self._partitions = topic, name, partitions
        self._sent = dict.fromkeys(partitions, 0)
        self._acknowledged: dict[int, dict[int, int]] = {partition: {} for partition in partitions}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="confluent-load", daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": in_flight_max,
                "linger.ms": 2,
                "batch.size": 20_000,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "queue.buffering.max.messages": 2000,
                "error_cb": self._failed,
                "log_level": 0,
            }
        )

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self._acknowledged.values()))

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        numbers = random.Random(self._name)
        while not self._ends.is_set():
            partition = numbers.choice(self._partitions)
            number = self._sent[partition]
            try:
                self._producer.produce(
                    self._topic, value_of(self._label(partition), number), partition=partition, on_delivery=self._delivered
                )
                self._sent[partition] = number + 1
            except BufferError:
                self._producer.poll(0.01)
            self._producer.poll(PAUSE_S if number % RECORDS_PER_PAUSE == 0 else 0)

    def _label(self, partition: int) -> str:
        return f"{self._name}{partition}"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.problem = f"librdkafka gave up on a record: {error}"
            return
        number = int((message.value() or b"").split(b":")[1])
        self._acknowledged[message.partition()][number] = message.offset()

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            self.problem = f"librdkafka's producer failed for good: {error}"

    def finish(self) -> None:
        self._ends.set()
        self._thread.join()
        left = self._producer.flush(FINISH_S_MAX)
        if left:
            self.problem = f"{left} records of librdkafka's producer were not acknowledged within {FINISH_S_MAX} s"

    def stop(self) -> None:
        self._ends.set()

    def sent_to(self, partition: int) -> int:
        return self._sent.get(partition, 0)

    def highest_offset(self, partition: int) -> int:
        return max(list(self._acknowledged.get(partition, {}).values()), default=-1)

    def compare(self, found: dict[int, list[bytes]]) -> list[str]:
        problems = [self.problem] if self.problem else []
        for partition in self._partitions:
            sent, acknowledged = self._sent[partition], self._acknowledged[partition]
            if len(acknowledged) != sent:
                problems.append(f"{sent - len(acknowledged)} records of {self._label(partition)} were never acknowledged")
            problems += check(self._label(partition), partition, sent, acknowledged, found[partition])
        return problems


class RawLoad:
    """Plain Produce requests, several in flight. Unanswered requests are sent again, in order and unchanged."""

    def __init__(self, bootstrap: str, topic: str, name: str, partition: int, in_flight_max: int) -> None:
        self.problem: str | None = None
        self._in_flight_max = in_flight_max
        self._bootstrap, self._topic, self._name, self._partition = bootstrap, topic, name, partition
        self._sent = 0
        self._acknowledged: dict[int, int] = {}
        self._ends, self._stops = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="raw-load", daemon=True)
        self._producer_id = -1
        self._unanswered: deque[tuple[int, int]] = deque()

    @property
    def acknowledged_count(self) -> int:
        return len(self._acknowledged)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stops.is_set() and not (self._ends.is_set() and not self._unanswered):
                try:
                    with RawClient.to(self._bootstrap, timeout_s=10) as client:
                        self._talk(client)
                except OSError:
                    time.sleep(0.02)
        except Exception as failure:
            self.problem = f"the plain producer failed: {failure!r}"

    def _talk(self, client: RawClient) -> None:
        """Send and receive until the connection breaks, `finish` is called, or a retriable error requires a resend."""
        while self._producer_id < 0:
            made = client.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4)
            self._producer_id = made.producer_id if made.error_code == 0 else -1
        waiting = deque(client.send(self._request(*each), 9) for each in self._unanswered)
        chances = random.Random(self._sent)
        while not self._stops.is_set():
            while not self._ends.is_set() and len(self._unanswered) < self._in_flight_max:
                fresh = (self._sent, chances.randint(1, 40))
                self._sent += fresh[1]
                self._unanswered.append(fresh)
                waiting.append(client.send(self._request(*fresh), 9))
            if not self._unanswered:
                return
            self._stops.wait(PAUSE_S)
            reply = client.receive(0, 9, waiting.popleft())
            if not self._take(reply.responses[0].partition_responses[0]):
                return

    def _take(self, answer: Any) -> bool:
        first, count = self._unanswered[0]
        if answer.error_code in RETRIABLE:
            time.sleep(0.02)
            return False
        if answer.error_code not in (0, DUPLICATE_SEQUENCE):
            self.problem = f"the plain producer's batch at {first} was refused with {answer.error_code}"
            self._stops.set()
            return False
        self._unanswered.popleft()
        if answer.error_code == 0:
            self._acknowledged.update((first + index, answer.base_offset + index) for index in range(count))
        return True

    def _request(self, first: int, count: int) -> ProduceRequest:
        values = [value_of(self._name, first + index) for index in range(count)]
        now_ms = time.time_ns() // 1_000_000  # a broker expires producers by the timestamps of their records
        batch = bytes(make_batch(*values, producer=(self._producer_id, 0, first), timestamp=now_ms))
        data = PartitionProduceData(index=self._partition, records=batch)
        return ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=self._topic, partition_data=[data])]
        )

    def finish(self) -> None:
        self._ends.set()
        self._thread.join(FINISH_S_MAX)
        if self._thread.is_alive():
            self.problem = f"the plain producer was not answered within {FINISH_S_MAX} s"

    def stop(self) -> None:
        self._stops.set()

    def sent_to(self, partition: int) -> int:
        return self._sent if partition == self._partition else 0

    def highest_offset(self, partition: int) -> int:
        return max(list(self._acknowledged.values()), default=-1) if partition == self._partition else -1

    def compare(self, found: dict[int, list[bytes]]) -> list[str]:
        problems = [self.problem] if self.problem else []
        return problems + check(self._name, self._partition, self._sent, self._acknowledged, found[self._partition])
