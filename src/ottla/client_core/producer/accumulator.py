"""`Accumulator`: the batches that wait to be sent, by partition, within buffer.memory.

Two threads meet here. Calling threads append: most records go straight into their partition's open batch
(`TopicBatches.append`, a kernel), and `append` here opens a batch when there is none or it is full. The event loop takes
batches away and finishes them. Both hold `lock` when they open, close or queue a batch, and no longer than that takes.

The wake-up rule: a calling thread must wake the loop only if a batch became full, if it waits for memory or for an open batch,
or if a new batch must leave before the deadline that the loop already knows (`loop_wakes_ms`), and not if it has been woken
already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from ottla.client_core.producer.batch import ProducerBatch, Waiting
from ottla.records.kernels import BufferMemory, Delivery, TopicBatches, record_size_max
from ottla.records.layout import HEADER_SIZE

Key = tuple[str, int]
"""(topic, partition)."""

FIRST_CAPACITY = 2048
"""How many bytes the buffer of a partition's first batch has. It doubles as records come, up to batch.size."""
NEVER_MS = 1 << 62
ANY_PARTITION = -1
DRAWN_FIRST, DRAWN_MAX = 8, 64
"""How many partitions for records without a key are drawn ahead: first after the loop looked, and after doubling."""

ChoosePartitions = Callable[[str, int, int], list[int]]
"""(topic, how many partitions it has, how many to draw) → the next partitions for records without a key."""


class AccumulatorSettings(Protocol):
    """The settings that batches depend on."""

    @property
    def batch_size(self) -> int: ...
    @property
    def linger_ms(self) -> int: ...
    @property
    def buffer_memory(self) -> int: ...
    @property
    def max_request_size(self) -> int: ...
    @property
    def partitioner_ignore_keys(self) -> bool: ...
    @property
    def sticky_batch_size(self) -> int: ...


class PartitionQueue:
    """The batches of one partition that are not in flight. The last one may still be open."""

    __slots__ = ("batches", "in_flight", "key", "size_last")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.batches: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.size_last = FIRST_CAPACITY
        """How large the last batch became."""

    def put_back(self, batch: ProducerBatch) -> None:
        """Queue a batch again, before those that were opened after it."""
        place = 0
        for queued in self.batches:
            if queued.number >= batch.number:
                break
            place += 1
        self.batches.insert(place, batch)


class MemoryTicket:
    """A caller's place in the queue for memory. `ready` is called, on the loop, when it is its turn to try again."""

    __slots__ = ("ready", "size")

    def __init__(self, size: int, ready: Callable[[], Any]) -> None:
        self.size = size
        self.ready = ready


class Accumulator:
    """Collects records into batches."""

    def __init__(
        self,
        settings: AccumulatorSettings,
        choose_partitions: ChoosePartitions,
        lock: AbstractContextManager[Any] | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self.settings = settings
        self._batch_size = min(settings.batch_size, settings.max_request_size)
        # At least 1: batch.size=0 switches batching off, and every record moves on.
        self._sticky_size = max(1, min(settings.sticky_batch_size, self._batch_size))
        self.memory = BufferMemory(settings.buffer_memory, self._batch_size)
        self.lock: AbstractContextManager[Any] = nullcontext() if lock is None else lock
        self.topics: dict[str, TopicBatches] = {}
        self.queues: dict[Key, PartitionQueue] = {}
        self.busy: dict[Key, PartitionQueue] = {}
        """The queues that hold batches."""
        self.incomplete: dict[ProducerBatch, None] = {}
        """Every batch that is not done, oldest first."""
        self.loop_wakes_ms = NEVER_MS
        """When the loop looks at the batches again in any case."""
        self.is_batch_full = False
        """Whether a batch became full since the loop looked."""
        self.is_woken = False
        """Whether the loop has been woken since it looked."""
        self.looks = 0
        """How often the loop has looked."""
        self.flushes = 0
        """How many callers wait for everything to be sent: batches do not linger then."""
        self.wake: Callable[[], Any] | None = None
        """Wakes the loop, from any thread; the owner sets it."""
        self._choose_partitions = choose_partitions
        self._drawn: list[TopicBatches] = []
        """The topics for which partitions were drawn since the loop looked."""
        self._draw = DRAWN_FIRST
        self._filled: set[str] = set()
        """The topics of which every partition has a queue."""
        self._waiting = waiting
        self._tickets: deque[MemoryTicket] = deque()
        self._opened = 0

    # Calling threads

    def set_partition_count(self, topic: str, count: int) -> TopicBatches:
        """Take over how many partitions a topic has. Open batches stay open."""
        known = self.topics.get(topic)
        if known is not None and known.partition_count == count:
            return known
        with self.lock:
            batches = TopicBatches(count, self.lock, self.settings.partitioner_ignore_keys, self._sticky_size)
            if known is not None:
                for partition, batch in enumerate(known.open[:count]):
                    batches.open[partition] = batch
                for batch in known.open[count:]:
                    if batch is not None:
                        batch.close()
            self.topics[topic] = batches
            self._filled.discard(topic)
        return batches

    def append(
        self,
        topic: str,
        partition: int,
        record: tuple[int, bytes | None, bytes | None, bytes],
        callback: Callable[..., Any] | None,
        now_ms: int,
        ticket: MemoryTicket | None = None,
    ) -> Delivery | None:
        """Add a record, (timestamp, key, value, packed headers), and open a batch for it; None if the memory is used up.

        The record is smaller than buffer.memory, and the topic's partition count is known: the caller has checked both.
        """
        timestamp, key, value, headers = record
        with self.lock:
            batches = self.topics[topic]
            if partition >= batches.partition_count:
                raise ValueError(
                    f"topic {topic} has no partition {partition} any more: it was made again with {batches.partition_count}"
                )
            is_keyless = partition < 0 and (key is None or batches.ignores_keys)
            if is_keyless:
                partition = self._sticky(topic, batches)
            elif partition < 0:
                partition = batches.partition_of(key)
            delivery = self._append_to_open(batches, partition, record, callback, is_keyless)
            if delivery is None and is_keyless and partition != (moved := self._sticky(topic, batches)):
                partition = moved
                delivery = self._append_to_open(batches, partition, record, callback, is_keyless)
            if delivery is None:
                new = self._open((topic, partition), record_size_max(key, value, headers), now_ms, ticket)
                if new is None:
                    return None
                batches.open[partition] = new
                delivery = Delivery(new, new.append(timestamp, key, value, headers, callback), timestamp)
                if is_keyless:
                    batches.produced(new.end, new.end)  # with the batch's header, as Kafka counts
            return delivery

    def _append_to_open(
        self,
        batches: TopicBatches,
        partition: int,
        record: tuple[int, bytes | None, bytes | None, bytes],
        callback: Callable[..., Any] | None,
        is_keyless: bool,
    ) -> Delivery | None:
        """Add a record to the open batch, if there is one with room; a full one is closed."""
        batch = batches.open[partition]
        if batch is None:
            return None
        before = batch.end
        index = batch.append(*record, callback)
        if index >= 0:
            if is_keyless:
                batches.produced(batch.end - before, batch.end)
            return Delivery(batch, index, record[0])
        batch.close()
        batches.open[partition] = None
        self.is_batch_full = True
        return None

    def _sticky(self, topic: str, batches: TopicBatches) -> int:
        """Where a record without a key goes. The partition that has had its share is left when its batch is gone."""
        sticky = batches.sticky
        if sticky >= 0 and batches.sticky_left <= 0 and batches.open[sticky] is None:
            batches.move_on()
            sticky = batches.sticky
        while sticky < 0:  # again if another thread's kernel, which takes no lock, has used up what was drawn
            batches.upcoming.extend(self._choose_partitions(topic, batches.partition_count, self._draw))
            self._drawn.append(batches)
            self._draw = min(2 * self._draw, DRAWN_MAX)
            batches.move_on()
            sticky = batches.sticky
        return sticky

    def lengths(self, topic: str) -> list[int]:
        """How much waits for each partition, in batches of Kafka's size; none before every partition has a queue.

        Called under the lock.
        """
        count = self.topics[topic].partition_count
        if topic not in self._filled:
            if any((topic, partition) not in self.queues for partition in range(count)):
                return []
            self._filled.add(topic)
        lengths = [0] * count
        unit = self._sticky_size
        full = -(-self._batch_size // unit)
        for (name, partition), queue in self.busy.items():
            if name == topic and partition < count:
                lengths[partition] = (len(queue.batches) - 1) * full - (-queue.batches[-1].end // unit)
        return lengths

    def _open(self, key: Key, size: int, now_ms: int, ticket: MemoryTicket | None) -> ProducerBatch | None:
        if self._tickets and self._tickets[0] is not ticket:
            return None  # others wait already
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = PartitionQueue(key)
        size_max = max(size, self._batch_size)
        # The last batch's size, because growing copies; from half of the limit on all of it, so that buffers fit again.
        capacity = size_max if queue.size_last * 2 > size_max else max(size, queue.size_last)
        if len(self._tickets) > 1 or not self.memory.reserve(capacity):
            capacity = size  # little is left, or others wait too: what the record needs must do
            if not self.memory.reserve(capacity):
                return None
        batch = ProducerBatch(key, self.memory, capacity, size_max, now_ms, self._waiting)
        self._opened += 1
        batch.number = self._opened
        batch.hurry = self._hurry
        queue.batches.append(batch)
        self.busy[key] = queue
        self.incomplete[batch] = None
        return batch

    def size_for(self, record: tuple[int, bytes | None, bytes | None, bytes]) -> int:
        """How many bytes a new batch for this record needs at least."""
        return record_size_max(*record[1:])

    def must_wake(self, now_ms: int) -> bool:
        """Whether a caller that has opened a batch must wake the loop; True once, until the loop has run."""
        if self.is_woken:
            return False
        self.is_woken = self.is_batch_full or now_ms + self.settings.linger_ms < self.loop_wakes_ms
        return self.is_woken

    def _hurry(self) -> None:
        """A caller waits for an open batch: wake the loop, unless it has been woken since it looked."""
        if not self.is_woken and self.wake is not None:
            self.is_woken = True
            self.wake()

    def wait_for_memory(self, ticket: MemoryTicket) -> None:
        """Queue for memory. The caller tries `append` with the ticket when it is ready, and always calls `leave` at the end."""
        with self.lock:
            self._tickets.append(ticket)
            self.memory.is_contended = True

    def leave(self, ticket: MemoryTicket) -> None:
        """The caller has its memory, or waits no longer."""
        with self.lock:
            self._tickets.remove(ticket)
            self.memory.is_contended = bool(self._tickets)
            self._call_next()

    @property
    def waiting_count(self) -> int:
        """How many callers wait for memory."""
        return len(self._tickets)

    def _call_next(self) -> None:
        if self._tickets and self._tickets[0].size <= self.memory.limit - self.memory.used:
            self._tickets[0].ready()

    # The event loop

    def looked(self, wakes_ms: int) -> None:
        """The loop is about to look at the batches, and does so again at `wakes_ms` at the latest."""
        self.looks += 1
        self.is_batch_full = False
        self.is_woken = False
        self.loop_wakes_ms = wakes_ms
        if self._drawn:
            with self.lock:
                for batches in self._drawn:
                    batches.upcoming.clear()  # the queues' lengths and the leaders will be others
                self._drawn.clear()
                self._draw = DRAWN_FIRST

    @property
    def is_hurried(self) -> bool:
        """Whether batches leave without lingering: someone waits for all of them, or for their memory."""
        return self.flushes > 0 or self.memory.is_contended

    def due_ms(self, queue: PartitionQueue) -> int:
        """When the first batch of a queue should be sent. 0: now."""
        batch = queue.batches[0]
        if batch.attempts > 0:
            return batch.retry_at_ms
        if batch.is_closed or batch.is_wanted or len(queue.batches) > 1 or self.is_hurried or batch.end >= batch.size_max:
            return 0
        return batch.created_ms + self.settings.linger_ms

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Take the first batch of a queue away to send it. It accepts no more records."""
        with self.lock:
            batch = queue.batches.popleft()
            if not queue.batches:
                self.busy.pop(queue.key, None)
            self._close(batch)
        queue.in_flight.append(batch)
        return batch

    def bring_forward(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Let a queued batch be the next that is taken. If it is put back, it gets its old place."""
        if queue.batches[0] is not batch:
            with self.lock:
                queue.batches.remove(batch)
                queue.batches.appendleft(batch)

    def put_back(self, batch: ProducerBatch) -> None:
        """Queue a batch that was taken, to send it again."""
        queue = self.queues[batch.key]
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        with self.lock:
            queue.put_back(batch)
            self.busy[batch.key] = queue

    def split(self, batch: ProducerBatch) -> None:
        """Queue the parts of a batch that was too large in its place."""
        parts = batch.split(HEADER_SIZE + (batch.end - HEADER_SIZE + 1) // 2)
        queue = self.queues[batch.key]
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        with self.lock:
            for part in reversed(parts):
                part.close()
                self.incomplete[part] = None
                queue.put_back(part)
            self.busy[batch.key] = queue

    def finish(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Forget a batch that is done, and release its memory. Returns it, and a batch that it was the last part of."""
        queue = self.queues[batch.key]
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        finished = [batch]
        with self.lock:
            self.incomplete.pop(batch, None)
            if batch.reserved:
                batch.reserved = False
                self.memory.release(batch.capacity)
                self.memory.give(batch.spare)
                self._call_next()
            batch.spare = bytearray()
        parent = batch.parent
        if parent is not None and all(part.is_done for _, part in parent.parts):
            parent.finish()
            finished.extend(self.finish(parent))
        return finished

    def drop(self, batch: ProducerBatch) -> None:
        """Take a batch out of its queue, because it has failed there."""
        queue = self.queues[batch.key]
        with self.lock:
            if batch in queue.batches:
                queue.batches.remove(batch)
            if not queue.batches:
                self.busy.pop(queue.key, None)
            self._close(batch)

    def unsent(self) -> Iterable[ProducerBatch]:
        """The batches that are in no request."""
        with self.lock:
            return [batch for queue in self.busy.values() for batch in queue.batches]

    def _close(self, batch: ProducerBatch) -> None:
        batch.close()
        self.queues[batch.key].size_last = batch.end
        batches = self.topics.get(batch.topic)
        if batches is not None and batch.partition < batches.partition_count and batches.open[batch.partition] is batch:
            batches.open[batch.partition] = None

    @property
    def oldest(self) -> ProducerBatch | None:
        """The batch that has waited longest. Under the lock: a thread that opens a batch would break the iterator."""
        with self.lock:
            return next(iter(self.incomplete), None)

    @property
    def record_count(self) -> int:
        """How many records are not done. Without the lock: the collector asks, in a thread that may hold it."""
        return sum(batch.count for batch in list(self.incomplete) if batch.parent is None)
