"""Parked fetches: when they are tried again, and what happens if a try fails."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual, waiting

from ottla.broker.partitions.partition import Partition
from ottla.broker.purgatory.delayed_fetch import DelayedFetch
from ottla.broker.requests.context import Pending
from ottla.broker.requests.scheduler import SLICE_S
from ottla.sim.loop import VirtualLoop
from ottla.wire.base import Message
from ottla.wire.messages.fetch import FetchResponse


class Attempt:
    """A fetch that is answered when `enough` is set, and counts how often it was tried."""

    def __init__(self, missing_bytes: int = 1) -> None:
        self.missing_bytes = missing_bytes
        self.tries = 0
        self.enough = False
        self.failure: Exception | None = None
        self.later: Pending | None = None

    def answer(self, is_last: bool) -> Message | Pending | None:
        self.tries += 1
        if self.failure is not None:
            raise self.failure
        return (self.later or FetchResponse()) if self.enough or is_last else None


class SlowAttempt(Attempt):
    """A fetch that takes a quarter of a slice."""

    def answer(self, is_last: bool) -> Message | Pending | None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.spend(SLICE_S / 4)
        return super().answer(is_last)


async def two_partitions() -> tuple[HeldPartitions, list[Partition]]:
    held = await HeldPartitions.open()
    await held.make_topic("t", 2)
    return held, [held.partition("t", index) for index in (0, 1)]


def test_fetch_is_tried_only_when_the_new_bytes_may_be_enough() -> None:
    async def scenario() -> None:
        held, partitions = await two_partitions()
        size = len(make_batch(b"a"))
        attempt = Attempt(missing_bytes=3 * size)
        reply = waiting(DelayedFetch(attempt, partitions, 60_000))
        for index in (0, 1):
            held.produced("t", index, make_batch(b"a"))
            await asyncio.sleep(1)
        assert attempt.tries == 0
        attempt.missing_bytes = 2 * size
        held.produced("t", 0, make_batch(b"a"))
        await asyncio.sleep(1)
        assert attempt.tries == 1, "two partitions and three batches: what was missing at first"
        held.produced("t", 0, make_batch(b"a"))
        await asyncio.sleep(1)
        assert attempt.tries == 1, "the failed try has set what is missing"
        attempt.enough = True
        held.produced("t", 1, make_batch(b"a"))
        await reply
        assert attempt.tries == 2
        assert not any(partition.watches for partition in partitions)

    virtual(scenario())


def test_when_the_node_stops_it_is_answered_at_once_and_only_once() -> None:
    async def scenario() -> None:
        _, partitions = await two_partitions()
        attempt = Attempt()
        fetch = DelayedFetch(attempt, partitions, 60_000)
        reply = waiting(fetch)
        fetch.answer_now()
        assert isinstance(await reply, FetchResponse)
        assert not any(partition.watches for partition in partitions)

        cold = Attempt()
        cold.later = Pending()
        fetch = DelayedFetch(cold, partitions, 60_000)
        reply = waiting(fetch)
        fetch.answer_now()
        fetch.answer_now()
        assert cold.tries == 1, "its records are being read"
        cold.later.complete(FetchResponse())
        assert isinstance(await reply, FetchResponse)

    virtual(scenario())


def test_failed_try_fails_that_fetch_and_the_others_are_answered() -> None:
    async def scenario() -> None:
        held, partitions = await two_partitions()
        attempts = [Attempt(), Attempt()]
        attempts[0].failure, attempts[1].enough = ValueError("odd"), True
        replies = [waiting(DelayedFetch(attempt, partitions, 60_000)) for attempt in attempts]
        held.produced("t", 0, make_batch(b"a"))
        with pytest.raises(ValueError, match="odd"):
            await replies[0]
        assert isinstance(await replies[1], FetchResponse)
        assert not partitions[0].watches

    virtual(scenario())


def test_a_loop_turn_tries_fetches_for_a_slice() -> None:
    async def scenario() -> None:
        held, partitions = await two_partitions()
        attempts = [SlowAttempt() for _ in range(9)]
        replies = [waiting(DelayedFetch(attempt, partitions[:1], 60_000)) for attempt in attempts]
        for attempt in attempts:
            attempt.enough = True
        held.produced("t", 0, make_batch(b"a"))
        turns = []
        while not all(reply.done() for reply in replies):
            await asyncio.sleep(0)
            turns.append(sum(attempt.tries for attempt in attempts))
        assert turns == [4, 8, 9]

    virtual(scenario())


def test_pending_answer_is_awaited() -> None:
    async def scenario() -> None:
        held, partitions = await two_partitions()
        attempt = Attempt()
        attempt.enough, attempt.later = True, Pending()
        reply = waiting(DelayedFetch(attempt, partitions, 60_000))
        held.produced("t", 0, make_batch(b"a"))
        await asyncio.sleep(1)
        assert not reply.done()
        response = FetchResponse()
        attempt.later.complete(response)
        assert await reply is response

    virtual(scenario())


def test_abandoned_fetch_is_not_tried() -> None:
    async def scenario() -> None:
        held, partitions = await two_partitions()
        attempt = Attempt()
        fetch = DelayedFetch(attempt, partitions, 1000)
        held.produced("t", 0, make_batch(b"a"))
        fetch.abandon()
        await asyncio.sleep(2)
        assert attempt.tries == 0

    virtual(scenario())
