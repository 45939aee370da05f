"""Requests with many batches that have to be decompressed: appended as others are, but with pauses for everybody else."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting

from ottla.broker.handlers.data import produce
from ottla.broker.handlers.data.produce_in_turns import ProduceInTurns
from ottla.broker.request import CloseConnection, Pending
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


@pytest.mark.parametrize("flush", [{}, {"flush.messages": 1}])
def test_they_are_answered_together_and_others_have_turns_between(flush: dict[str, object]) -> None:
    async def scenario() -> None:
        held = await opened(**flush)
        handled = produce.handle(held.context(0, 12), request())
        assert isinstance(handled, ProduceInTurns)
        assert handled.holds_back, "the order of requests is kept"
        reply, seen = waiting(handled), []
        while not reply.done():
            seen.append(sum(ends(held)))
            await asyncio.sleep(0)
        assert [count for count in range(COUNT + 1) if count in seen] == list(range(COUNT + 1)), "never two in one turn"
        entries = (await reply).responses
        found = [(entry.name, part.index, part.error_code) for entry in entries for part in entry.partition_responses]
        assert found == [("t" if index < 5 else "u", index, 0) for index in range(COUNT)]
        assert all(held.partition("t", index).log.high_watermark == 1 for index in range(5))

    virtual(scenario())


def test_each_is_refused_for_itself() -> None:
    async def scenario() -> None:
        held = await opened()
        answer = await waiting(produce.handle(held.context(0, 12), request(missing=2)))
        codes = [part.error_code for entry in answer.responses for part in entry.partition_responses]
        assert codes == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, 0, 0, 0, 0]

    virtual(scenario())


@pytest.mark.parametrize("missing", [None, 2])
def test_without_acks_an_error_ends_the_connection_after_all_are_appended(missing: int | None) -> None:
    async def scenario() -> None:
        held = await opened()
        reply = waiting(produce.handle(held.context(0, 12), request(acks=0, missing=missing)))
        if missing is None:
            assert await reply is None
        else:
            with pytest.raises(CloseConnection):
                await reply
        assert sum(ends(held)) == (COUNT if missing is None else COUNT - 1)

    virtual(scenario())


@pytest.mark.parametrize("case", ["not compressed", "not compacted"])
def test_what_is_not_decompressed_is_appended_at_once(case: str) -> None:
    async def scenario() -> None:
        held = await opened(**{"cleanup.policy": "delete"} if case == "not compacted" else {})
        handled = produce.handle(held.context(0, 12), request(codec=Codec.NONE if case == "not compressed" else Codec.ZSTD))
        assert not isinstance(handled, Pending)
        assert sum(ends(held)) == COUNT

    virtual(scenario())
