"""Fetches of many partitions, which are read in slices: the same responses as others, now or later."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch, sized_batch
from tests.support.nodes.held_partitions import virtual, waiting
from tests.support.peers.fetching import bytes_of, fetch_of, found, node, part, values

from ottla.broker.fetch_sessions import Answers, FetchedPartition
from ottla.broker.handlers.data import fetch
from ottla.broker.requests.context import future_of
from ottla.broker.requests.scheduler import SlicedWork
from ottla.errors.codes import ErrorCode


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PARTITIONS_ON_LOOP", 1)
    monkeypatch.setattr(fetch, "PARTITIONS_PER_STEP", 1)


def test_byte_limits_hold_over_all_slices() -> None:
    async def scenario() -> None:
        held = await node()
        for index in range(3):
            for _ in range(3):
                held.produced("t", index, sized_batch(1000))
        first, *others = [
            len(bytes_of(data))
            for data in found(await waiting(held.fetch(fetch_of("t", part(0), part(1), part(2), max_bytes=1))))
        ]
        assert first >= 900
        assert others == [0, 0]
        request = fetch_of("t", part(0, max_bytes=first), part(1, max_bytes=2 * first), part(2), max_bytes=4 * first)
        handled = held.fetch(request)
        assert isinstance(handled, SlicedWork)
        assert [len(bytes_of(data)) for data in found(await waiting(handled))] == [first, 2 * first, first]

    virtual(scenario())


def test_unknown_partitions_do_not_end_the_wait() -> None:
    async def scenario() -> None:
        held = await node()
        reply = waiting(held.fetch(fetch_of("t", part(0), part(99), max_wait_ms=10_000)))
        await asyncio.sleep(1)
        assert not reply.done()
        held.produced("t", 0, make_batch(b"a"))
        first, second = found(await reply)
        assert (first.error_code, second.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert held.clock.monotonic_s() == pytest.approx(1)
        assert not held.partition("t").watches

    virtual(scenario())


def test_waiting_ends_when_the_time_is_over() -> None:
    async def scenario() -> None:
        held = await node()
        held.produced("t", 0, make_batch(b"a"))
        reply = waiting(held.fetch(fetch_of("t", part(0), part(1), min_bytes=1000, max_wait_ms=300)))
        assert values(await reply) == [[b"a"], []]
        assert held.clock.monotonic_s() == pytest.approx(0.3)

    virtual(scenario())


@pytest.mark.parametrize("replicas", [(1,), (1, 2)])
def test_append_behind_a_slice_is_not_waited_for(replicas: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a consumer, which sees up to the high watermark, and by a follower, which sees all."""

    async def scenario() -> None:
        held = await node()
        await held.make_topic("r", 2, replicas=replicas)
        read_each = fetch.Fetch._read_each

        def append_before_the_second(self: fetch.Fetch, few: list[FetchedPartition], *answers: Answers) -> None:
            if few[0].index == 1:
                held.produced("r", 0, make_batch(b"a"), acks=1)
            read_each(self, few, *answers)

        monkeypatch.setattr(fetch.Fetch, "_read_each", append_before_the_second)
        replica_id = 2 if len(replicas) == 2 else -1
        reply = waiting(held.fetch(fetch_of("r", part(0), part(1), max_wait_ms=10_000, replica_id=replica_id)))
        assert values(await reply) == [[], []], "partition 0 was read before"
        assert held.partition("r").log.log_end_offset == 1
        assert held.clock.monotonic_s() == 0

    virtual(scenario())


def test_session_is_begun_and_continued() -> None:
    async def scenario() -> None:
        held = await node()
        full = await waiting(held.fetch(fetch_of("t", part(0), part(1), session_epoch=0, max_wait_ms=0)))
        assert full.session_id
        held.produced("t", 1, make_batch(b"a"))
        request = fetch_of("t", session_id=full.session_id, session_epoch=1, max_wait_ms=0)
        request.topics = []
        assert values(await future_of(held.fetch(request))) == [[b"a"]]

    virtual(scenario())
