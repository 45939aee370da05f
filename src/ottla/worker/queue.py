"""`WorkQueue`: which record a worker handles next, which offsets it may commit, and which partitions it pauses. Pure.

Records of one lane are handled one after the other, in their order; lanes are independent of each other. A lane is a partition,
a key within a partition, or a single record. The lane of a record that failed stands still until the record is due again.

Per partition, a window holds the records from the oldest unfinished one on, in the order of their offsets, with those behind it
that are finished. An offset may be committed when every record before it is finished: it is that of the window's first record.
The window's order, not arithmetic, says which records come before: offsets have gaps, left by compaction and transactions.

A partition that is given up takes its records along. A handler may still run for one of them; its result is ignored, also
when the partition has come back in the meantime. The caller locks, where threads share a queue.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Hashable, Iterable
from itertools import count
from typing import Any, Final, Literal

from ottla.client.consumer.record import ConsumerRecord
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.ids import TopicPartition

Order = Literal["key", "partition", "none"]
ORDERS: Final = ("key", "partition", "none")


class Work:
    """One record that the worker has taken from its consumer, with raw key and value."""

    __slots__ = ("attempts", "is_done", "lane", "record")

    def __init__(self, record: ConsumerRecord[Any, Any], lane: Lane) -> None:
        self.record = record
        self.lane = lane
        self.attempts = 0
        """How often a handler was called for it."""
        self.is_done = False

    @property
    def is_dropped(self) -> bool:
        """Whether its partition was given up: its result does not count."""
        return self.lane.window.is_dropped


class Lane:
    """Records that are handled one after the other."""

    __slots__ = ("name", "waiting", "window")

    def __init__(self, window: Window, name: Hashable) -> None:
        self.window = window
        self.name = name
        self.waiting: deque[Work] = deque()
        """The first one is in process, or is the next."""


class Window:
    """What is not finished of one partition, for one assignment of it."""

    __slots__ = ("committable", "in_process", "is_committed", "is_dropped", "lanes", "works")

    def __init__(self) -> None:
        self.works: deque[Work] = deque()
        self.lanes: dict[Hashable, Lane] = {}
        self.in_process = 0
        self.committable: OffsetAndMetadata | None = None
        """Every record before this offset is finished; None if no record was."""
        self.is_committed = True
        """Whether `committable` is committed already."""
        self.is_dropped = False


class WorkQueue:
    """The records between a worker's consumer and its handlers: at most `bound`."""

    def __init__(self, order: Order, bound: int) -> None:
        self._order = order
        self._bound = bound
        self._windows: dict[TopicPartition, Window] = {}
        self._ready: deque[Lane] = deque()
        self._retries: list[tuple[float, int, Lane]] = []
        self._numbers = count()
        self._is_closed = False
        self.size = 0
        """The records in all windows."""
        self.in_process = 0
        """The records that are with handlers, dropped ones not included."""

    # Partitions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions were added."""
        for each in partitions:
            self.drop([each])
            self._windows[each] = Window()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions are gone: nothing of them is handled or committed any more."""
        for each in partitions:
            window = self._windows.pop(each, None)
            if window is not None:
                window.is_dropped = True
                self.size -= len(window.works)
                self.in_process -= window.in_process

    def halt(self, partitions: Collection[TopicPartition]) -> None:
        """Start no more records of these partitions. Those in process may still finish and be committed."""
        for each in partitions:
            window = self._windows.get(each)
            if window is not None:
                for lane in window.lanes.values():
                    while len(lane.waiting) > 1:
                        lane.waiting.pop()
                window.lanes = {}
        self._ready = deque(lane for lane in self._ready if _is_current(lane))

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions that are assigned."""
        return set(self._windows)

    def close(self) -> None:
        """Start nothing any more."""
        self._is_closed = True

    def in_process_of(self, partitions: Iterable[TopicPartition]) -> int:
        """The records of these partitions that are with handlers."""
        return sum(window.in_process for each in partitions if (window := self._windows.get(each)) is not None)

    # Records

    def add(self, records: Iterable[ConsumerRecord[Any, Any]]) -> None:
        """These records were taken from the consumer, in order for each partition."""
        for record in records:
            window = self._windows.get(TopicPartition(record.topic, record.partition))
            if window is None:  # it was given up after the poll
                continue
            name = self._lane_of(record)
            lane = window.lanes.get(name)
            if lane is None:
                lane = window.lanes[name] = Lane(window, name)
                self._ready.append(lane)
            work = Work(record, lane)
            lane.waiting.append(work)
            window.works.append(work)
            self.size += 1

    def _lane_of(self, record: ConsumerRecord[Any, Any]) -> Hashable:
        if self._order == "partition":
            return None
        if self._order == "key" and record.key is not None:
            key: bytes = record.key
            return key
        return record.offset  # records without a key have no order among each other

    def take(self, now_s: float) -> Work | None:
        """The next record to handle; None if none may be handled now."""
        if self._is_closed:
            return None
        retries = self._retries
        while retries and retries[0][0] <= now_s:
            lane = heapq.heappop(retries)[2]
            if _is_current(lane):
                self._ready.appendleft(lane)  # it has waited long enough
        while self._ready:
            lane = self._ready.popleft()
            if _is_current(lane):
                work = lane.waiting[0]
                work.attempts += 1
                lane.window.in_process += 1
                self.in_process += 1
                return work
        return None

    def next_retry_s(self) -> float | None:
        """When the next record that failed is due again."""
        while self._retries and not _is_current(self._retries[0][2]):
            heapq.heappop(self._retries)
        return self._retries[0][0] if self._retries and not self._is_closed else None

    @property
    def is_ready(self) -> bool:
        """Whether `take` may have a record now, retries not counted."""
        return bool(self._ready) and not self._is_closed

    def retry(self, work: Work, due_s: float) -> None:
        """A record failed, and is to be handled again. Its lane waits for it."""
        if self._leave(work):
            heapq.heappush(self._retries, (due_s, next(self._numbers), work.lane))

    def finish(self, work: Work) -> None:
        """A record is handled, or is a dead letter that was acknowledged."""
        if not self._leave(work):
            return
        work.is_done = True
        lane, window = work.lane, work.lane.window
        lane.waiting.popleft()
        if _is_current(lane):
            if lane.waiting:
                self._ready.append(lane)
            else:
                del window.lanes[lane.name]
        works = window.works
        while works and works[0].is_done:
            last = works.popleft().record
            self.size -= 1
            window.committable = OffsetAndMetadata(last.offset + 1, "", last.leader_epoch if last.leader_epoch >= 0 else None)
            window.is_committed = False

    def _leave(self, work: Work) -> bool:
        """A handler has ended; False if its result does not count."""
        if work.is_dropped:
            return False
        work.lane.window.in_process -= 1
        self.in_process -= 1
        return True

    # Commits

    def committable(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """What may be committed, of these partitions or all, and is not committed yet."""
        chosen = self._windows if partitions is None else partitions
        return {
            each: window.committable
            for each in chosen
            if (window := self._windows.get(each)) is not None and window.committable and not window.is_committed
        }

    def committed(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """A commit has succeeded."""
        for each, offset in offsets.items():
            window = self._windows.get(each)
            if window is not None and window.committable == offset:
                window.is_committed = True

    # The bound

    @property
    def room(self) -> int:
        """How many records the next poll may take; 0 if the queue is full."""
        return max(0, min(self._bound - self.size, self._share))

    @property
    def _share(self) -> int:
        # A partition is paused at half of its part of the bound, and a poll takes at most the other half of one: a partition
        # that stands still leaves room for the others.
        return max(1, self._bound // (2 * max(1, len(self._windows))))

    def full(self) -> set[TopicPartition]:
        """The partitions that are to be paused now: those that have their share, or all."""
        if self.size >= self._bound:
            return set(self._windows)
        share = self._share
        return {each for each, window in self._windows.items() if len(window.works) >= share}


def _is_current(lane: Lane) -> bool:
    """Whether a lane's records may still be started."""
    return not lane.window.is_dropped and lane.window.lanes.get(lane.name) is lane
