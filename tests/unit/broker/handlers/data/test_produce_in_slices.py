"""Produce requests with many or expensive batches: appended in slices, and answered as others are."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting

from ottla.broker.handlers.data import produce
from ottla.broker.requests.context import CloseConnection, Pending, future_of
from ottla.broker.requests.scheduler import SLICE_S, SlicedWork
from ottla.errors.codes import ErrorCode
from ottla.records.compression import Codec
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

COUNT = 8


def request(acks: int = -1, codec: Codec = Codec.ZSTD, missing: int | None = None) -> ProduceRequest:
    def batch() -> memoryview:
        return memoryview(make_batch(b"v", key=b"k", codec=codec))

    batches = [PartitionProduceData(index=99 if index == missing else index, records=batch()) for index in range(COUNT)]
    topics = [TopicProduceData(name="t", partition_data=batches[:5]), TopicProduceData(name="u", partition_data=batches[5:])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


async def opened(**configs: object) -> HeldPartitions:
    held = await HeldPartitions.open()
    for name in ("t", "u"):
        await held.make_topic(name, COUNT, {"cleanup.policy": "compact", **configs})
    return held


def ends(held: HeldPartitions) -> list[int]:
    return [held.partition("t" if index < 5 else "u", index).log.log_end_offset for index in range(COUNT)]


class Steady:
    """A clock for the lane that moves on with each look at it."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += self._step_s
        return self._now_s


@pytest.mark.parametrize("flush", [{}, {"flush.messages": 1}])
def test_they_are_answered_together_and_others_have_turns_between(flush: dict[str, object]) -> None:
    async def scenario() -> None:
        held = await opened(**flush)
        held.services.scheduler.now_s = Steady(SLICE_S)
        handled = produce.handle(held.context(0, 12), request())
        assert isinstance(handled, SlicedWork)
        assert handled.holds_back, "the order of requests is kept"
        reply, seen = waiting(handled), []
        while not reply.done():
            seen.append(sum(ends(held)))
            await asyncio.sleep(0)
        seen.append(sum(ends(held)))
        assert [count for count in range(1, COUNT + 1) if count in seen] == list(range(1, COUNT + 1)), "never two in one turn"
        assert not handled.holds_back
        entries = (await reply).responses
        found = [(entry.name, part.index, part.error_code) for entry in entries for part in entry.partition_responses]
        assert found == [("t" if index < 5 else "u", index, 0) for index in range(COUNT)]
        assert all(held.partition("t", index).log.high_watermark == 1 for index in range(5))

    virtual(scenario())


def test_a_request_is_abandoned_between_two_slices() -> None:
    async def scenario() -> None:
        held = await opened(**{"flush.messages": 1})
        held.services.scheduler.now_s = Steady(SLICE_S)
        handled = produce.handle(held.context(0, 12), request())
        assert isinstance(handled, SlicedWork)
        handled.abandon()
        for _ in range(20):
            await asyncio.sleep(0)
        assert sum(ends(held)) == 1
        assert not any(held.partition("t", index).ack_waits for index in range(5))

    virtual(scenario())


def bomb(size_bytes: int, codec: Codec = Codec.ZSTD, sequence: int = -1) -> memoryview:
    """One record of many equal bytes."""
    producer = None if sequence < 0 else (7, 0, sequence)
    return memoryview(make_batch(b"v" * size_bytes, key=b"k", codec=codec, producer=producer))


@pytest.mark.parametrize("size_bytes", [2 << 20, 20 << 20])
def test_an_expensive_batch_is_checked_off_the_loop_and_keeps_its_place(size_bytes: int) -> None:
    async def scenario() -> None:
        held = await opened()
        one = PartitionProduceData(index=0, records=bomb(size_bytes, sequence=0))
        big = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[one])])
        handled = produce.handle(held.context(0, 12), big)
        assert isinstance(handled, SlicedWork)
        held.produce("t", 0, make_batch(b"other", key=b"k"))  # of another connection
        (answer,) = (await waiting(handled)).responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (0, 1)
        one.records = bomb(size_bytes, sequence=0)
        (again,) = (await waiting(produce.handle(held.context(0, 12), big))).responses[0].partition_responses
        assert (again.error_code, again.base_offset) == (0, 1), "a duplicate gets the first offset"
        assert held.partition("t", 0).log.log_end_offset == 2

    virtual(scenario())


def test_an_expensive_batch_for_a_topic_that_is_deleted_meanwhile() -> None:
    async def scenario() -> None:
        held = await opened()
        one = PartitionProduceData(index=0, records=bomb(2 << 20))
        big = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[one])])
        handled = produce.handle(held.context(0, 12), big)
        held.partition("t", 0).fail(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleted")
        (answer,) = (await waiting(handled)).responses[0].partition_responses
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    virtual(scenario())


def test_each_is_refused_for_itself() -> None:
    async def scenario() -> None:
        held = await opened()
        answer = await future_of(produce.handle(held.context(0, 12), request(missing=2)))
        codes = [part.error_code for entry in answer.responses for part in entry.partition_responses]
        assert codes == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, 0, 0, 0, 0]

    virtual(scenario())


@pytest.mark.parametrize("missing", [None, 2])
def test_without_acks_an_error_ends_the_connection_after_all_are_appended(missing: int | None) -> None:
    async def scenario() -> None:
        held = await opened()
        if missing is None:
            assert produce.handle(held.context(0, 12), request(acks=0)) is None
        else:
            with pytest.raises(CloseConnection):
                produce.handle(held.context(0, 12), request(acks=0, missing=missing))
        assert sum(ends(held)) == (COUNT if missing is None else COUNT - 1)

    virtual(scenario())


@pytest.mark.parametrize("codec", Codec)
def test_small_batches_are_appended_at_once(codec: Codec) -> None:
    async def scenario() -> None:
        held = await opened()
        handled = produce.handle(held.context(0, 12), request(codec=codec))
        assert not isinstance(handled, Pending)
        assert sum(ends(held)) == COUNT

    virtual(scenario())
