"""Batches under construction: both variants write the same bytes, which the reader understands, within their memory."""

import gc
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import Row, rows

from ottla.records.batch import BatchView
from ottla.records.builder import build_produce_batch
from ottla.records.kernels import load_variant, partition_of_key
from ottla.records.layout import HEADER_SIZE

PURE = load_variant("kernel_accumulate", pure=True)
COMPILED = load_variant("kernel_accumulate", pure=False)
VARIANTS = [variant for variant in (PURE, COMPILED) if variant is not None]
each_variant = pytest.mark.parametrize("kernel", VARIANTS, ids=["pure", "compiled"][: len(VARIANTS)])


def filled(kernel: Any, made: list[Row], capacity: int = 4096, size_max: int = 1 << 20) -> Any:
    memory = kernel.BufferMemory(1 << 30)
    assert memory.reserve(capacity)
    batch = kernel.OpenBatch(memory, capacity, size_max)
    for index, (timestamp, key, value, headers) in enumerate(made):
        assert batch.append(timestamp, key, value, kernel.pack_headers(headers), None) == index
    return batch


@given(rows(min_size=1))
def test_records_are_encoded_as_the_builder_does(made: list[Row]) -> None:
    expected = build_produce_batch(made)
    view = BatchView(expected)
    for kernel in VARIANTS:
        batch = filled(kernel, made)
        assert bytes(batch.buffer[HEADER_SIZE : batch.end]) == bytes(expected[HEADER_SIZE:])
        assert (batch.count, batch.base_timestamp, batch.max_timestamp) == (len(made), view.base_timestamp, view.max_timestamp)


@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 1000)), min_size=1, max_size=50), st.integers(61, 2000))
def test_variants_agree_on_what_fits(items: list[tuple[bytes, int]], size_max: int) -> None:
    outcomes = []
    for kernel in VARIANTS:
        memory = kernel.BufferMemory(4000)
        capacity = kernel.record_size_max(None, items[0][0], kernel.NO_HEADERS)
        assert memory.reserve(capacity)
        batch = kernel.OpenBatch(memory, capacity, max(size_max, capacity))
        indexes = [batch.append(stamp, None, value, kernel.NO_HEADERS, None) for value, stamp in items]
        assert memory.used == batch.capacity == len(batch.buffer) <= memory.limit
        outcomes.append((indexes, bytes(batch.buffer[: batch.end]), batch.end, batch.capacity))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert outcomes[0][0][0] == 0


@each_variant
def test_a_closed_batch_takes_no_record(kernel: Any) -> None:
    batch = filled(kernel, [(1, None, b"a", ())])
    batch.close()
    assert batch.append(1, None, b"b", kernel.NO_HEADERS, None) == -1
    assert batch.count == 1


@each_variant
def test_the_largest_record_is_known(kernel: Any) -> None:
    batch = filled(kernel, [(1, None, b"a", ())])
    assert batch.record_bytes_max == batch.end - 61 == 8
    batch.append(1, None, b"b" * 30, kernel.NO_HEADERS, None)
    batch.append(1, None, b"c", kernel.NO_HEADERS, None)
    assert batch.record_bytes_max == 37


@each_variant
def test_a_buffer_does_not_grow_while_callers_wait_for_memory(kernel: Any) -> None:
    batch = filled(kernel, [(1, None, b"a" * 50, ())], capacity=150)
    batch.memory.is_contended = True
    assert batch.append(1, None, b"b" * 50, kernel.NO_HEADERS, None) == -1
    batch.memory.is_contended = False
    assert batch.append(1, None, b"b" * 50, kernel.NO_HEADERS, None) == 1


@each_variant
def test_callbacks_keep_index_and_timestamp(kernel: Any) -> None:
    batch = filled(kernel, [(1, None, b"a", ())])
    batch.append(7, None, b"b", kernel.NO_HEADERS, print)
    assert batch.callbacks == {1: (7, print)}


@each_variant
@pytest.mark.parametrize("header", [("a",), "ab", ("a", "b"), (b"a", b"b"), ["a", b"b"]])
def test_a_wrong_header_is_named(kernel: Any, header: Any) -> None:
    with pytest.raises(TypeError, match="header 1 is"):
        kernel.pack_headers([("fine", b""), header])


@each_variant
def test_more_headers_than_one_byte_counts(kernel: Any) -> None:
    headers = tuple((f"h{number}", b"v") for number in range(200))
    made: list[Row] = [(1, None, b"a", headers)]
    batch = filled(kernel, made)
    assert bytes(batch.buffer[HEADER_SIZE : batch.end]) == bytes(build_produce_batch(made)[HEADER_SIZE:])


@given(st.none() | st.binary(max_size=40), st.integers(1, 50))
def test_keys_choose_the_partition_that_other_clients_choose(key: bytes | None, count: int) -> None:
    for kernel in VARIANTS:
        topic = kernel.TopicBatches(count, nullcontext(), False)
        assert topic.partition_of(key) == (-1 if key is None else partition_of_key(key, count))


@each_variant
def test_records_go_to_the_open_batch_of_their_partition(kernel: Any) -> None:
    topic = kernel.TopicBatches(3, nullcontext(), False)
    assert topic.append(-1, 1, None, b"v", kernel.NO_HEADERS, None) is None  # no partition is chosen yet
    batch = topic.open[2] = filled(kernel, [(1, None, b"a", ())])
    assert topic.append(1, 1, None, b"v", kernel.NO_HEADERS, None) is None
    assert topic.append(3, 1, None, b"v", kernel.NO_HEADERS, None) is None
    topic.sticky, topic.sticky_left = 2, 100
    delivery = topic.append(-1, 5, None, b"v", kernel.NO_HEADERS, None)
    assert (delivery.batch, delivery.index, delivery.timestamp) == (batch, 1, 5)
    assert topic.sticky_left == 100 - 8
    key = next(key for number in range(100) if partition_of_key(key := b"%d" % number, 3) == 2)
    assert topic.append(-1, 5, key, b"v", kernel.NO_HEADERS, None).index == 2
    assert topic.sticky_left == 100 - 8


@each_variant
def test_keyless_records_move_on_when_their_batch_has_the_size_or_twice_of_it_was_sent(kernel: Any) -> None:
    topic = kernel.TopicBatches(3, nullcontext(), False, 100)
    topic.upcoming.extend([1, 0])
    memory = kernel.BufferMemory(1 << 20)

    def add() -> int:
        made = topic.append(-1, 1, None, b"v" * 12, kernel.NO_HEADERS, None)  # 19 bytes
        return -1 if made is None else topic.open.index(made.batch)

    def send(partition: int) -> None:
        topic.open[partition] = kernel.OpenBatch(memory, 500, 500)

    for partition in range(3):
        send(partition)
    topic.move_on()
    assert [add() for _ in range(7)] == [0] * 6 + [1]  # 114 bytes, in a batch that is larger than 100
    for number in range(10):
        assert topic.sticky_left == 100 - 19 * (number + 1)
        send(1)
        assert add() == 1  # its share is produced after some time, but its batch is always small
    assert topic.sticky == -1  # twice its share; and no other partition was drawn
    assert add() == -1
    topic.upcoming.append(2)
    topic.move_on()
    assert add() == 2


@pytest.mark.skipif(COMPILED is None, reason="the kernels are not compiled")
def test_handles_are_no_work_for_the_collector() -> None:
    kernel: Any = COMPILED
    topic = kernel.TopicBatches(1, nullcontext(), False)
    topic.open[0] = filled(kernel, [(1, None, b"a", ())])
    delivery = topic.append(0, 5, None, b"v", kernel.NO_HEADERS, None)
    assert delivery.index == 1
    assert not gc.is_tracked(delivery)


@each_variant
def test_buffers_are_used_again_within_the_limit(kernel: Any) -> None:
    memory = kernel.BufferMemory(1_000, 400)
    assert memory.reserve(400)
    first = memory.take(400)
    memory.release(400)
    memory.give(first)
    assert memory.spare == [first]
    assert memory.reserve(400)
    assert memory.take(400) is first
    memory.release(400)
    memory.give(first)
    assert memory.reserve(700)  # others need the memory: the spare buffer goes
    assert memory.spare == []
    memory.give(bytearray(400))
    assert memory.spare == []
    memory.release(700)
    memory.give(bytearray(300))
    memory.give(bytearray())
    assert memory.spare == []


@each_variant
def test_a_buffer_that_something_reads_is_not_used_again(kernel: Any) -> None:
    memory = kernel.BufferMemory(1_000, 400)
    buffer = bytearray(400)
    with memoryview(buffer):
        memory.give(buffer)
        assert memory.spare == []
    memory.give(buffer)
    assert memory.spare == [buffer]
    assert len(buffer) == 400


@each_variant
def test_a_delivery_asks_its_batch(kernel: Any) -> None:
    class Answering:
        is_done = True

        def result(self, index: int, timestamp: int, timeout: float | None) -> Any:
            return (index, timestamp, timeout)

        def exception(self, index: int, timeout: float | None) -> Any:
            return (index, timeout)

        def describe(self, index: int) -> str:
            return f"number {index}"

    delivery = kernel.Delivery(Answering(), 3, 99)
    assert delivery.done()
    assert delivery.result() == (3, 99, None)
    assert delivery.result(timeout=2) == (3, 99, 2)
    assert delivery.exception(1) == (3, 1)
    assert repr(delivery) == "Delivery(number 3)"


def plain_sender(kernel: Any, batches: Any) -> Any:
    """A producer with the topic `t`, whose `_send_other` returns what it was given."""

    class Sender(kernel.PlainSend):  # type: ignore[misc]  # a variant's class is Any
        def _send_other(self, *given: Any) -> Any:
            return given

    sender = Sender()
    sender._plain_topics = {"t": batches}
    sender._lineage = SimpleNamespace(generation=1)
    sender._generation = 1
    sender._clock_ns = lambda: 1_700_000_000_123_999_999
    return sender


@each_variant
def test_a_plain_record_goes_into_its_open_batch(kernel: Any) -> None:
    batches = kernel.TopicBatches(1, nullcontext(), False)
    batches.open[0] = batch = filled(kernel, [])
    sender = plain_sender(kernel, batches)
    first = sender.send("t", b"v", b"k")
    second = sender.send("t", value=None, key=b"k", on_delivery=print)
    assert [(each.batch is batch, each.index, each.timestamp) for each in (first, second)] == [
        (True, 0, 1_700_000_000_123),
        (True, 1, 1_700_000_000_123),
    ]
    assert batch.callbacks == {1: (1_700_000_000_123, print)}


@each_variant
@pytest.mark.parametrize(
    "given",
    [
        {"partition": 0},
        {"timestamp": 5},
        {"headers": [("a", b"b")]},
        {"on_delivery": "not a function"},
        {"topic": "unknown"},
        {"value": "text"},
        {"key": 7},
    ],
)
def test_every_other_record_is_left_to_the_producer(kernel: Any, given: dict[str, Any]) -> None:
    batches = kernel.TopicBatches(1, nullcontext(), False)
    batches.open[0] = batch = filled(kernel, [])
    named = {"topic": "t", "value": b"v", "key": b"k", "partition": None, "timestamp": None, "headers": (), "on_delivery": None}
    assert plain_sender(kernel, batches).send(**{"topic": "t", "value": b"v", "key": b"k", **given}) == tuple(
        {**named, **given}.values()
    )
    assert batch.count == 0


@each_variant
def test_a_forked_child_and_a_full_batch_are_left_to_the_producer(kernel: Any) -> None:
    batches = kernel.TopicBatches(1, nullcontext(), False)
    sender = plain_sender(kernel, batches)
    left = ("t", b"v", None, None, None, (), None)
    assert sender.send("t", b"v") == left, "no batch is open"
    batches.open[0] = filled(kernel, [(1, None, b"a", ())], size_max=70)
    batches.sticky = 0
    assert sender.send("t", b"v" * 100) == ("t", b"v" * 100, *left[2:])
    batches.open[0] = filled(kernel, [])
    sender._lineage.generation = 2
    assert sender.send("t", b"v") == left
