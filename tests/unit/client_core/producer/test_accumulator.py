"""The accumulator: batches per partition, memory in turn, and when a caller must wake the loop."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.producers.settings import small_settings

from ottla.client_core.producer.accumulator import NEVER_MS, Accumulator, ChoosePartitions, MemoryTicket
from ottla.client_core.producer.batch import ProducerBatch
from ottla.config.client import producer_settings
from ottla.records.kernels import NO_HEADERS, Delivery


def in_turn() -> ChoosePartitions:
    """One partition after another, so that every change is seen."""
    turns = count()
    return lambda topic, partitions, number: [next(turns) % partitions]


def made(**changes: object) -> Accumulator:
    accumulator = Accumulator(small_settings(**changes), in_turn())
    accumulator.set_partition_count("t", 3)
    return accumulator


def add(
    accumulator: Accumulator, partition: int, size: int = 10, now_ms: int = 0, ticket: MemoryTicket | None = None
) -> Delivery | None:
    return accumulator.append("t", partition, (0, None, b"x" * size, NO_HEADERS), None, now_ms, ticket)


def finish(accumulator: Accumulator, batch: ProducerBatch) -> list[ProducerBatch]:
    batch.complete(0, -1)
    return accumulator.finish(batch)


def test_records_of_a_partition_share_a_batch_until_it_is_full() -> None:
    accumulator = made()
    handles = [add(accumulator, 1, 50) for _ in range(4)]
    batches = [handle.batch for handle in handles if handle is not None]
    assert batches[0] is batches[1]
    assert batches[0] is not batches[2]
    assert list(accumulator.queues["t", 1].batches) == [batches[0], batches[2]]
    assert (batches[0].is_closed, batches[2].is_closed) == (True, False)


def test_a_batch_is_due_when_it_is_full_has_lingered_or_is_hurried() -> None:
    accumulator = made(linger_ms=5)
    add(accumulator, 0, now_ms=100)
    queue = accumulator.queues["t", 0]
    assert accumulator.due_ms(queue) == 105
    accumulator.flushes += 1
    assert accumulator.due_ms(queue) == 0
    accumulator.flushes -= 1
    add(accumulator, 0, 150, now_ms=101)
    assert accumulator.due_ms(queue) == 0


def test_a_retry_is_due_after_its_backoff_and_goes_before_later_batches() -> None:
    accumulator = made()
    for _ in range(3):
        add(accumulator, 0, 150)
    queue = accumulator.queues["t", 0]
    first, second = accumulator.take(queue), accumulator.take(queue)
    third = queue.batches[0]
    assert queue.in_flight == [first, second]
    second.attempts = first.attempts = 1
    first.retry_at_ms = 900
    accumulator.put_back(second)
    accumulator.put_back(first)
    assert list(queue.batches) == [first, second, third]
    assert accumulator.due_ms(queue) == 900


def test_a_batch_that_was_taken_accepts_nothing_more() -> None:
    accumulator = made()
    handle = add(accumulator, 0)
    taken = accumulator.take(accumulator.queues["t", 0])
    assert handle is not None
    assert handle.batch is taken
    assert accumulator.topics["t"].open[0] is None
    assert accumulator.topics["t"].append(0, 0, None, b"x", NO_HEADERS, None) is None


def test_memory_is_given_in_turn() -> None:
    accumulator = made(buffer_memory=1_000, batch_size=400)
    first = add(accumulator, 0, 700)
    assert first is not None
    woken: list[str] = []
    large = MemoryTicket(600, lambda: woken.append("large"))
    small = MemoryTicket(120, lambda: woken.append("small"))
    accumulator.wait_for_memory(large)
    accumulator.wait_for_memory(small)
    assert accumulator.memory.is_contended
    assert accumulator.is_hurried
    assert add(accumulator, 1, 20) is None  # without a ticket
    assert add(accumulator, 1, 20, ticket=small) is None  # not its turn, although it would fit
    accumulator.take(accumulator.queues["t", 0])
    finish(accumulator, first.batch)
    assert woken == ["large"]
    assert add(accumulator, 1, 500, ticket=large) is not None
    accumulator.leave(large)
    assert woken == ["large", "small"]
    assert add(accumulator, 2, 20, ticket=small) is not None
    accumulator.leave(small)
    assert not accumulator.memory.is_contended
    assert accumulator.memory.used <= 1_000


def test_one_caller_wakes_the_loop_for_a_new_deadline_or_a_full_batch() -> None:
    accumulator = made(linger_ms=5)
    add(accumulator, 0, now_ms=0)
    assert accumulator.must_wake(0)
    assert not accumulator.must_wake(0)  # woken already
    accumulator.looked(NEVER_MS)
    accumulator.loop_wakes_ms = 5
    add(accumulator, 1, now_ms=1)
    assert not accumulator.must_wake(1)  # the loop wakes before that batch is due
    add(accumulator, 1, 150, now_ms=2)
    assert accumulator.must_wake(2)  # a batch is full


def add_keyless(accumulator: Accumulator, size: int) -> ProducerBatch:
    """As a producer does: the kernel first."""
    handle = accumulator.topics["t"].append(-1, 0, None, b"x" * size, NO_HEADERS, None)
    handle = handle or add(accumulator, -1, size)
    assert handle is not None
    batch: ProducerBatch = handle.batch
    return batch


@pytest.mark.parametrize(
    ("changes", "in_batch", "records"),
    [({}, 1, 97), ({}, 3, 129), ({"batch.size": 16_384}, None, 296), ({}, None, 149), ({"batch.size": 0}, None, 1)],
    ids=["linger 0", "a record every 2 ms", "burst", "burst into larger batches", "no batches"],
)
def test_keyless_records_stay_as_long_as_apache_kafkas_do(changes: dict[str, int], in_batch: int | None, records: int) -> None:
    """Values of 100 bytes. The first three numbers are those of Kafka's producer (tests/compat/client/test_spreading.py)."""
    accumulator = Accumulator(producer_settings("a:1", changes), in_turn())
    accumulator.set_partition_count("t", 3)
    turns: list[int] = []
    for number in range(1_200):
        batch = add_keyless(accumulator, 100)
        if not turns or batch.partition != (len(turns) - 1) % 3:
            turns.append(0)
        assert batch.partition == (len(turns) - 1) % 3
        turns[-1] += 1
        if in_batch is not None and number % in_batch == in_batch - 1:
            accumulator.take(accumulator.queues["t", batch.partition])
    assert set(turns[:-1]) == {records}


@given(
    st.integers(0, 400),
    st.sampled_from([1, 4]),
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from([None, None, None, 0, 1, 2])), max_size=60),
)
def test_turn_of_a_partition_ends_when_kafka_would_end_it(share: int, times: int, script: list[tuple[int, int | None]]) -> None:
    """A turn ends when its share is produced and the batch has that size, is full or is sent; or with twice its share.

    Batches may be `times` as large as the share.
    """
    settings = small_settings(batch_size=share, max_request_size=1_000_000, buffer_memory=10_000_000)
    accumulator = Accumulator(settings.replaced(batch_size=share * times), in_turn())
    batches = accumulator.set_partition_count("t", 3)
    share = max(1, share)
    turn = produced = 0
    for size, taken in script:
        ends = {each: each.end for each in batches.open if each is not None}
        mine = batches.open[turn % 3]
        batch = add_keyless(accumulator, size)
        if batch is not mine and produced >= share:
            turn, produced = turn + 1, 0
        assert batch.partition == turn % 3
        produced += batch.end - ends.get(batch, 0)  # with the header of a new batch
        if produced >= share and (batch.end >= share or produced >= 2 * share):
            turn, produced = turn + 1, 0
        if taken is not None and ("t", taken) in accumulator.busy:
            accumulator.take(accumulator.queues["t", taken])


def test_partitions_drawn_ahead_are_forgotten_when_the_loop_looks() -> None:
    drawn: list[int] = []

    def choose(topic: str, partitions: int, number: int) -> list[int]:
        drawn.append(number)
        return [0] * number

    accumulator = Accumulator(small_settings(batch_size=0), choose)
    batches = accumulator.set_partition_count("t", 3)
    for _ in range(30):
        add_keyless(accumulator, 10)
    assert drawn == [8, 16, 32]
    accumulator.looked(0)
    assert batches.upcoming == []
    add_keyless(accumulator, 10)
    add_keyless(accumulator, 10)
    assert drawn == [8, 16, 32, 8]


def test_lengths_of_queues_are_counted_in_batches_of_kafkas_size() -> None:
    accumulator = Accumulator(producer_settings("a:1"), in_turn())
    accumulator.set_partition_count("t", 3)
    for partition, size in ((0, 10), (1, 20_000), (1, 260_000)):
        add(accumulator, partition, size)
        assert accumulator.lengths("t") == []  # a partition without a queue would never be chosen
    add(accumulator, 2, 40_000)
    assert accumulator.lengths("t") == [1, 16 + 16, 3]
    accumulator.take(accumulator.queues["t", 2])
    assert accumulator.lengths("t") == [1, 32, 0]
    accumulator.set_partition_count("t", 4)
    assert accumulator.lengths("t") == []


# Callers who wait


def test_batch_that_a_caller_waits_for_is_due_and_wakes_the_loop_once() -> None:
    accumulator = made()
    woken: list[int] = []
    accumulator.wake = lambda: woken.append(1)
    accumulator.looked(NEVER_MS)
    handles = [add(accumulator, partition) for partition in (0, 0, 1)]
    queue = accumulator.queues["t", 0]
    assert accumulator.due_ms(queue) == 5
    for handle in handles:
        assert handle is not None
        handle.batch.want()
    assert accumulator.due_ms(queue) == 0
    assert woken == [1]  # it looks at all batches
    later = add(accumulator, 0)
    assert later is not None
    assert later.batch is queue.batches[0]  # goes along
    accumulator.looked(NEVER_MS)
    later = add(accumulator, 2)
    assert later is not None
    later.batch.want()
    assert woken == [1, 1]


def test_batch_that_a_caller_waits_for_takes_those_before_it_along_but_no_retry() -> None:
    accumulator = made()
    first, second = add(accumulator, 0, 150), add(accumulator, 0, 150)
    assert first is not None
    assert second is not None
    queue = accumulator.queues["t", 0]
    accumulator.take(queue)
    first.batch.attempts, first.batch.retry_at_ms = 1, 900
    accumulator.put_back(first.batch)
    second.batch.want()
    assert accumulator.due_ms(queue) == 900  # a backoff is no linger, and order is kept
    accumulator.take(queue)
    assert accumulator.due_ms(queue) == 0


def test_batch_in_flight_wakes_nothing_when_a_caller_waits_for_it() -> None:
    accumulator = made()
    accumulator.wake = lambda: pytest.fail("the loop has nothing to do")
    handle = add(accumulator, 0)
    assert handle is not None
    accumulator.take(accumulator.queues["t", 0])
    handle.batch.want()
    assert handle.batch.is_wanted


def test_more_partitions_keep_open_batches() -> None:
    accumulator = made()
    handle = add(accumulator, 2)
    grown = accumulator.set_partition_count("t", 5)
    assert handle is not None
    assert grown.open[2] is handle.batch
    assert accumulator.set_partition_count("t", 5) is grown


def test_a_partition_that_is_gone_is_named() -> None:
    """A caller that waits for memory has chosen its partition before: the topic may be made again with fewer meanwhile."""
    accumulator = made()
    accumulator.set_partition_count("t", 1)
    with pytest.raises(ValueError, match="no partition 2 any more: it was made again with 1"):
        add(accumulator, 2)


def test_the_parts_of_a_split_batch_take_its_place_and_finish_it() -> None:
    accumulator = made(batch_size=400)
    handles = [add(accumulator, 0, 50) for _ in range(4)]
    later = add(accumulator, 0, 300)
    queue = accumulator.queues["t", 0]
    whole = accumulator.take(queue)
    whole.seal(0, None, False)  # type: ignore[arg-type]
    accumulator.split(whole)
    assert later is not None
    assert [batch.count for batch in queue.batches] == [2, 2, 1]
    first, second = accumulator.take(queue), accumulator.take(queue)
    assert accumulator.memory.used == whole.capacity + later.batch.capacity
    assert finish(accumulator, first) == [first]
    assert finish(accumulator, second) == [second, whole]
    assert all(handle is not None and handle.done() for handle in handles)
    assert accumulator.record_count == 1
    assert accumulator.memory.used == later.batch.capacity


def test_dropped_batches_leave_their_queue() -> None:
    accumulator = made()
    handle = add(accumulator, 0)
    assert handle is not None
    assert list(accumulator.unsent()) == [handle.batch]
    accumulator.drop(handle.batch)
    assert list(accumulator.unsent()) == []
    assert accumulator.busy == {}
