"""The accumulator: batches per partition, memory in turn, and when a caller must wake the loop."""

import pytest
from tests.support.producers.settings import small_settings

from ottla.client_core.producer.accumulator import NEVER_MS, Accumulator, MemoryTicket
from ottla.client_core.producer.batch import ProducerBatch
from ottla.records.kernels import NO_HEADERS, Delivery


def made(**changes: object) -> Accumulator:
    accumulator = Accumulator(small_settings(**changes), lambda topic, count, last: (last + 1) % count)
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


def test_keyless_records_move_on_after_batch_size_bytes() -> None:
    accumulator = made()
    partitions = [handle.batch.partition for _ in range(8) if (handle := add(accumulator, -1, 60)) is not None]
    assert partitions == [0, 0, 1, 1, 2, 2, 0, 0]


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
