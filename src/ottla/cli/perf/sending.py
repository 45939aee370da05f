"""The loop of `ottla perf produce`: sends values in groups, and learns from each batch when its records were stored.

No Python code runs per record: `send_many` encodes a group, all records of a group have the time of its call as their start,
and a batch is looked at once, when it is done. Groups are small, so that the start of none is off by a millisecond.

The producer's thread only notes when a batch was done; everything else here runs in the calling thread.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from ottla.cli.perf.pace import Pace
from ottla.cli.perf.payloads import Payloads
from ottla.cli.perf.send_statistics import SendStatistics
from ottla.client.producer.deliveries import Deliveries
from ottla.client.producer.sync import Producer
from ottla.client_core.producer.batch import ProducerBatch

GROUP_RECORDS_MAX, GROUP_BYTES_MAX = 500, 64 * 1024
_BATCH_OF = attrgetter("batch")

BytesProducer = Producer[bytes, bytes]


@dataclass(frozen=True, slots=True)
class SendPlan:
    """What to send, and how fast."""

    topic: str
    records: int
    payloads: Payloads
    throughput: float = -1
    """Records per second; negative for no limit."""
    warmup: int = 0
    """How many of the first records do not belong to the steady state."""
    transaction_ms: int | None = None
    """How long a transaction lasts; None: no transactions."""
    interval_ms: int = 5000


class _Part(NamedTuple):
    """Records of one group in one batch."""

    records: int
    size_bytes: int
    start_s: float
    is_steady: bool


class Sending:
    """One run. `report` gets the lines of each window, `progress` (records, bytes, now) after each group."""

    def __init__(
        self,
        producer: BytesProducer,
        plan: SendPlan,
        report: Callable[[list[str]], object],
        progress: Callable[[int, int, float], object],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._plan = plan
        self._report = report
        self._progress = progress
        self._now_s = now_s
        self._parts: dict[ProducerBatch, list[_Part]] = {}
        self._done: deque[tuple[ProducerBatch, float]] = deque()
        self._sent = 0
        self._group_records = max(1, min(GROUP_RECORDS_MAX, GROUP_BYTES_MAX // max(1, plan.payloads.average_bytes)))
        self.all = SendStatistics(now_s())
        self.steady: SendStatistics | None = None
        self.failures: Counter[str] = Counter()
        """How many records failed with which error."""

    def run(self) -> None:
        """Send everything, and wait until it is stored or has failed."""
        plan = self._plan
        self.all = SendStatistics(self._now_s())
        pace = Pace(plan.throughput, self.all.total.start_s)
        transaction_start_s = None
        while self._sent < plan.records:
            due = pace.due(self._sent, self._now_s())
            if due == 0:
                self._collect()
                time.sleep(pace.pause_s(self._sent, self._now_s()))
                continue
            if plan.transaction_ms is not None and transaction_start_s is None:
                self._producer.begin_transaction()
                transaction_start_s = self._now_s()
            start_s = self._send(due)
            if transaction_start_s is not None and (start_s - transaction_start_s) * 1000 >= (plan.transaction_ms or 0):
                self._producer.commit_transaction()
                transaction_start_s = None
            self._collect()
        if transaction_start_s is not None:
            self._producer.commit_transaction()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until everything that was sent is stored or has failed."""
        self._producer.flush(timeout_s)
        now_s = self._now_s()
        self._done.extend((batch, now_s) for batch in self._parts if batch.is_done)
        self._collect()

    def _send(self, due: int | None) -> float:
        """Send one group; returns when."""
        plan = self._plan
        end = plan.warmup if self._sent < plan.warmup else plan.records
        room = min(self._group_records, end - self._sent, GROUP_RECORDS_MAX if due is None else due)
        values = plan.payloads.take(room)
        if plan.warmup and self._sent == plan.warmup and self.steady is None:
            self.steady = SendStatistics(self._now_s(), is_steady=True)
        start_s = self._now_s()
        handles = self._producer.send_many(plan.topic, values)
        self._sent += len(values)
        self._note(handles, values, start_s)
        return start_s

    def _note(self, handles: Deliveries, values: Sequence[bytes], start_s: float) -> None:
        """Remember which records went into which batches. They are in order, so each batch has a range of `values`."""
        at = 0
        for batch, count in Counter(map(_BATCH_OF, handles)).items():
            size_bytes = sum(map(len, values[at : at + count]))
            at += count
            part = _Part(count, size_bytes, start_s, self.steady is not None)
            known = self._parts.get(batch)
            if known is not None:
                known.append(part)
                continue
            self._parts[batch] = [part]
            batch.waiters.append(self._stamper(batch))
            if batch.is_done:  # perhaps before it had the waiter
                self._done.append((batch, self._now_s()))

    def _stamper(self, batch: ProducerBatch) -> Callable[[], None]:
        """Called in the producer's thread. Appending to a deque is atomic."""
        return lambda: self._done.append((batch, self._now_s()))

    def _collect(self) -> None:
        """Count the records of batches that are done, and report if it is time."""
        while self._done:
            batch, done_s = self._done.popleft()
            parts = self._parts.pop(batch, None)
            if parts is None:
                continue  # noted twice
            if batch.error is None and not batch.parts:
                for part in parts:
                    self._count(part, done_s)
            else:
                self._count_each(batch, parts, done_s)
        now_s = self._now_s()
        shown = self.all if self.steady is None else self.steady
        if shown.window.records and (now_s - shown.window.start_s) * 1000 >= self._plan.interval_ms:
            self._report(shown.take_window(now_s))
        self._progress(self.all.total.records, self.all.total.size_bytes, now_s)

    def _count(self, part: _Part, done_s: float) -> None:
        latency_ms = int((done_s - part.start_s) * 1000)
        self.all.add(part.records, part.size_bytes, latency_ms)
        if part.is_steady and self.steady is not None:
            self.steady.add(part.records, part.size_bytes, latency_ms)

    def _count_each(self, batch: ProducerBatch, parts: list[_Part], done_s: float) -> None:
        """Count a batch that failed or was split: some of its records may be stored."""
        index = 0
        for part in parts:
            errors = [error for each in range(part.records) if (error := batch.error_of(index + each)) is not None]
            index += part.records
            self.failures.update(map(str, errors))
            stored = part.records - len(errors)
            if stored:
                self._count(part._replace(records=stored, size_bytes=part.size_bytes * stored // part.records), done_s)
