"""`WorkQueue` beside a plain model: lanes keep their order, commits cover finished records only, nothing is started twice."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla import ConsumerRecord, TopicPartition
from ottla.worker.queue import Order, Work, WorkQueue

BOUND = 12
PARTITIONS = [TopicPartition("t", number) for number in range(3)]


def record(partition: int, offset: int, key: bytes | None = None) -> ConsumerRecord[Any, Any]:
    return ConsumerRecord("t", partition, offset, key=key, value=b"", leader_epoch=1)


def queue_of(order: Order, *records: ConsumerRecord[Any, Any], bound: int = BOUND) -> WorkQueue:
    made = WorkQueue(order, bound)
    made.assign(PARTITIONS)
    made.add(records)
    return made


def take_all(queue: WorkQueue, now_s: float = 0.0) -> list[Work]:
    found = []
    while (work := queue.take(now_s)) is not None:
        found.append(work)
    return found


def offsets(works: list[Work]) -> list[int]:
    return [work.record.offset for work in works]


def committable(queue: WorkQueue) -> dict[int, int]:
    return {each.partition: at.offset for each, at in queue.committable().items()}


def test_records_of_a_key_are_handled_one_after_the_other() -> None:
    queue = queue_of("key", record(0, 0, b"a"), record(0, 1, b"b"), record(0, 2, b"a"), record(1, 0, b"a"))
    first = take_all(queue)
    assert offsets(first) == [0, 1, 0]
    queue.finish(first[0])
    assert offsets(take_all(queue)) == [2]


def test_records_of_a_partition_are_handled_one_after_the_other() -> None:
    queue = queue_of("partition", record(0, 0, b"a"), record(0, 1, b"b"), record(1, 7))
    assert offsets(take_all(queue)) == [0, 7]


@pytest.mark.parametrize("order", ["key", "none"])
def test_records_without_a_key_are_handled_at_once(order: Order) -> None:
    assert offsets(take_all(queue_of(order, record(0, 0), record(0, 1)))) == [0, 1]


def test_commit_stops_before_the_oldest_unfinished_record() -> None:
    queue = queue_of("none", *[record(0, offset) for offset in (0, 1, 5, 9)])  # offsets have gaps
    first, second, third, last = take_all(queue)
    queue.finish(third)
    queue.finish(second)
    assert committable(queue) == {}
    queue.finish(first)
    assert committable(queue) == {0: 6}
    queue.finish(last)
    assert committable(queue) == {0: 10}
    queue.committed(queue.committable())
    assert committable(queue) == {}


def test_failed_record_holds_up_its_lane_until_it_is_due() -> None:
    queue = queue_of("key", record(0, 0, b"a"), record(0, 1, b"a"), record(0, 2, b"b"))
    failed, other = take_all(queue)
    queue.retry(failed, due_s=5.0)
    queue.finish(other)
    assert take_all(queue, 4.9) == []
    assert queue.next_retry_s() == 5.0
    assert take_all(queue, 5.0) == [failed]
    assert failed.attempts == 2
    queue.finish(failed)
    assert offsets(take_all(queue)) == [1]


def test_result_of_a_revoked_partition_does_not_count_when_it_comes_back() -> None:
    queue = queue_of("partition", record(0, 0))
    [straggler] = take_all(queue)
    queue.drop([PARTITIONS[0]])
    queue.assign([PARTITIONS[0]])
    queue.add([record(0, 0), record(0, 1)])
    [again] = take_all(queue)
    queue.finish(straggler)
    assert committable(queue) == {}
    assert queue.in_process == 1
    queue.finish(again)
    assert committable(queue) == {0: 1}


def test_halted_partition_finishes_what_is_in_process_only() -> None:
    queue = queue_of("key", record(0, 0, b"a"), record(0, 1, b"a"), record(1, 0))
    works = take_all(queue)
    queue.halt([PARTITIONS[0]])
    assert queue.in_process_of([PARTITIONS[0]]) == 1
    for each in works:
        queue.finish(each)
    assert take_all(queue) == []
    assert committable(queue) == {0: 1, 1: 1}


def test_partition_that_stands_still_leaves_room_for_others() -> None:
    queue = queue_of("partition")
    offset = 0
    while PARTITIONS[0] not in queue.full():
        queue.add(record(0, offset + number) for number in range(queue.room))
        offset += queue.room
    assert queue.full() == {PARTITIONS[0]}
    assert queue.room > 0
    assert queue.size <= BOUND // 3


class Queue(RuleBasedStateMachine):
    """Any order of polls, handlers' ends, retries, rebalances and commits."""

    order: Order = "key"

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue(self.order, BOUND)
        self.now_s = 0.0
        self.end = defaultdict[TopicPartition, int](int)
        self.running: list[Work] = []
        self.given: dict[TopicPartition, list[int]] = {}
        """What was taken since the partition was assigned."""
        self.finished: dict[TopicPartition, set[int]] = {}
        self.committed: dict[TopicPartition, int] = {}

    @rule(partition=st.sampled_from(PARTITIONS))
    def assign(self, partition: TopicPartition) -> None:
        if partition not in self.given:
            self.queue.assign([partition])
            self.given[partition], self.finished[partition] = [], set()
            self.end[partition] = self.committed.get(partition, 0)

    @rule(partition=st.sampled_from(PARTITIONS), is_halted=st.booleans())
    def revoke(self, partition: TopicPartition, is_halted: bool) -> None:
        if partition in self.given:
            if is_halted:
                self.queue.halt([partition])
                while (work := self.queue.take(self.now_s)) is not None:
                    assert _place(work) != partition
                    self.running.append(work)
            self.queue.drop([partition])
            del self.given[partition], self.finished[partition]

    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        open_partitions = sorted(self.given.keys() - self.queue.full())
        if self.queue.room and open_partitions:
            records = []
            for _ in range(data.draw(st.integers(1, self.queue.room))):
                partition = data.draw(st.sampled_from(open_partitions))
                offset = self.end[partition] + data.draw(st.integers(0, 1))
                self.end[partition] = offset + 1
                self.given[partition].append(offset)
                key = (None, b"a", b"b")[offset % 3]
                records.append(ConsumerRecord("t", partition.partition, offset, key=key))
            self.queue.add(records)

    @rule()
    def start(self) -> None:
        if (work := self.queue.take(self.now_s)) is not None:
            lane = self._lane(work)
            assert not any(lane == self._lane(each) for each in self.running if not each.is_dropped), "one at a time"
            earlier = [each for each in self.given[_place(work)] if each < work.record.offset]
            same = [each for each in earlier if lane == self._lane_of(_place(work), each)]
            assert {*same} <= self.finished[_place(work)], "in order"
            assert work.record.offset not in self.finished[_place(work)]
            self.running.append(work)

    def _lane(self, work: Work) -> object:
        return self._lane_of(_place(work), work.record.offset)

    def _lane_of(self, partition: TopicPartition, offset: int) -> object:
        if self.order == "partition":
            return partition
        return (partition, offset % 3 if self.order == "key" and offset % 3 else f"offset {offset}")

    @precondition(lambda self: self.running)
    @rule(data=st.data(), is_retried=st.booleans())
    def end_handler(self, data: st.DataObject, is_retried: bool) -> None:
        work = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if is_retried:
            self.queue.retry(work, self.now_s + data.draw(st.floats(0, 3)))
            return
        if not work.is_dropped:
            self.finished[_place(work)].add(work.record.offset)
        self.queue.finish(work)

    @rule(seconds=st.floats(0, 2))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    @rule(is_stored=st.booleans())
    def commit(self, is_stored: bool) -> None:
        found = self.queue.committable()
        for partition, at in found.items():
            before = [offset for offset in self.given[partition] if offset < at.offset]
            assert {*before} <= self.finished[partition], "only finished records"
            assert at.offset >= self.committed.get(partition, 0), "never backwards"
        if is_stored:
            self.queue.committed(found)
            self.committed.update({partition: at.offset for partition, at in found.items()})

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.size <= BOUND
        assert self.queue.in_process == sum(not work.is_dropped for work in self.running)

    def teardown(self) -> None:
        """Whatever happened, all that is left gets done, and everything may be committed."""
        for work in self.running:
            if not work.is_dropped:
                self.finished[_place(work)].add(work.record.offset)
            self.queue.finish(work)
        while (work := self.queue.take(float("inf"))) is not None:
            self.finished[_place(work)].add(work.record.offset)
            self.queue.finish(work)
        assert self.finished == {partition: {*given} for partition, given in self.given.items()}
        assert self.queue.size == 0
        ends = {partition: given[-1] + 1 for partition, given in self.given.items() if given}
        found = {partition: at.offset for partition, at in self.queue.committable().items()}
        assert all(found.get(partition, self.committed.get(partition)) == end for partition, end in ends.items())


def _place(work: Work) -> TopicPartition:
    return TopicPartition(work.record.topic, work.record.partition)


class PartitionQueue(Queue):
    order = "partition"


class FreeQueue(Queue):
    order = "none"


for _each in (Queue, PartitionQueue, FreeQueue):
    _each.TestCase.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestKeyOrder, TestPartitionOrder, TestNoOrder = Queue.TestCase, PartitionQueue.TestCase, FreeQueue.TestCase
