"""max.poll.interval.ms counts the time that a program spends outside of the consumer, never the time that it waits inside.

Both group protocols, in virtual time. The synchronous face, for which the simulator has no threads, against a real broker.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.support.nodes.sim_broker import SimBroker, in_virtual_time

from ottla import Consumer, aio
from ottla.client_core.machine import Request
from ottla.errors import InconsistentGroupProtocolError
from ottla.ids import TopicPartition
from ottla.testing import Broker
from ottla.wire.messages.join_group import JoinGroupRequest

INTERVAL_S = 4.0
LONG_S = 14.0
"""Several intervals."""
T0 = TopicPartition("t", 0)


@pytest.fixture(params=["classic", "consumer"])
def member(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of a member for each group protocol in turn."""
    return {"group_protocol": request.param, "group_id": "g", "max_poll_interval_ms": int(INTERVAL_S * 1000)}


class Losses:
    """A listener that notes what its consumer loses, and waits inside of on_assigned if it is told to."""

    def __init__(self, assigned_s: float = 0.0) -> None:
        self.assigned_s = assigned_s
        self.assigned = 0
        self.lost = 0

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        self.assigned += 1
        wait_s, self.assigned_s = self.assigned_s, 0.0
        await asyncio.sleep(wait_s)

    def on_lost(self, partitions: set[TopicPartition]) -> None:
        self.lost += 1


async def joined(broker: SimBroker, listener: Any = None, **settings: Any) -> aio.Consumer[bytes, bytes]:
    """A consumer that has the one partition of topic `t`, and has read its first record."""
    await broker.create_topic("t")
    await broker.produce("t", b"first")
    consumer = broker.consumer(**settings)
    consumer.subscribe(["t"], listener)
    assert [record.value for record in await consumer.poll(60)] == [b"first"]
    return consumer


async def after_a_silence(broker: SimBroker, call: Awaitable[Any]) -> Any:
    """The result of a call that waits until a record comes, after several intervals."""
    waiting = asyncio.ensure_future(call)
    await asyncio.sleep(LONG_S)
    assert not waiting.done()
    await broker.produce("t", b"late")
    return await asyncio.wait_for(waiting, 1)


WAYS: dict[str, Callable[[aio.Consumer[bytes, bytes]], Awaitable[Any]]] = {
    "iteration": lambda consumer: anext(aiter(consumer)),
    "poll": lambda consumer: consumer.poll(None),
    "batches": lambda consumer: consumer.batches(None),
    "consume_columns": lambda consumer: consumer.consume_columns(None),
}


@pytest.mark.parametrize("way", WAYS)
def test_reading_goes_on_after_a_long_silence(member: dict[str, Any], way: str) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses()
        async with await joined(broker, losses, **member) as consumer:
            assert await after_a_silence(broker, WAYS[way](consumer))
            assert (losses.assigned, losses.lost) == (1, 0)

    in_virtual_time(scenario)


def test_a_poll_that_finds_nothing_keeps_its_partitions(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses()
        async with await joined(broker, losses, **member) as consumer:
            consumer.pause(T0)
            await broker.produce("t", b"held back")
            assert await consumer.poll(LONG_S) == []
            await asyncio.sleep(INTERVAL_S - 0.5)  # counted from the return of the poll
            assert await consumer.poll(0) == []
            consumer.resume(T0)
            assert [record.value for record in await consumer.poll(1)] == [b"held back"]
            assert (losses.assigned, losses.lost) == (1, 0)
            await asyncio.sleep(INTERVAL_S + 0.5)
            assert [record.value for record in await consumer.poll(60)] == [b"held back"]
            assert (losses.assigned, losses.lost) == (2, 1), "a program that works for too long still loses its partitions"

    in_virtual_time(scenario)


def test_a_cancelled_wait_counts_until_it_was_cancelled(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses()
        async with await joined(broker, losses, **member) as consumer:
            for _ in range(3):
                with suppress(TimeoutError):
                    await asyncio.wait_for(consumer.poll(None), INTERVAL_S + 1)
                await asyncio.sleep(INTERVAL_S - 0.5)
            assert await after_a_silence(broker, consumer.poll(None))
            assert losses.lost == 0

    in_virtual_time(scenario)


def test_waiting_for_a_topic_and_for_the_group_counts_as_polling(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses()
        async with broker.consumer(**member, allow_auto_create_topics=False, metadata_max_age_ms=500) as consumer:
            consumer.subscribe(["t"], losses)
            step = asyncio.ensure_future(anext(aiter(consumer)))
            await asyncio.sleep(LONG_S)  # the topic does not exist, and the group rebalances for longer than the interval
            await broker.create_topic("t")
            await asyncio.sleep(LONG_S)
            await broker.produce("t", b"late")
            assert (await asyncio.wait_for(step, 30)).value == b"late"
            assert losses.lost == 0

    in_virtual_time(scenario, {"group.initial.rebalance.delay.ms": "6000"})


def test_waiting_for_a_coordinator_that_is_away_counts_as_polling(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses()
        async with await joined(broker, losses, **member) as consumer:
            poll = asyncio.ensure_future(consumer.poll(None))
            broker.machine.pause()
            await asyncio.sleep(LONG_S)
            broker.machine.resume()
            assert await after_a_silence(broker, poll)
            assert losses.lost == 0

    in_virtual_time(scenario)


def test_other_calls_stop_the_clock_while_they_wait_and_start_no_interval(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses()
        async with await joined(broker, losses, **member) as consumer:
            await asyncio.sleep(INTERVAL_S - 1)
            broker.machine.pause()
            commit = asyncio.ensure_future(consumer.commit())
            await asyncio.sleep(LONG_S)
            broker.machine.resume()
            await commit
            await asyncio.sleep(0.5)
            assert await consumer.poll(0) == []
            assert losses.lost == 0
            for _ in range(10):
                await asyncio.sleep(INTERVAL_S / 9)
                await consumer.committed(T0)
            await consumer.poll(1)
            assert losses.lost == 1, "a program that never polls takes part in no rebalance"

    in_virtual_time(scenario)


def test_a_member_that_a_slow_listener_put_out_joins_again_in_the_same_call(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        await broker.create_topic("t")
        losses = Losses(assigned_s=INTERVAL_S + 1)
        async with broker.consumer(**member) as consumer:
            consumer.subscribe(["t"], losses)
            assert (await after_a_silence(broker, anext(aiter(consumer)))).value == b"late"
            assert (losses.assigned, losses.lost) == (2, 1)

    in_virtual_time(scenario)


def test_the_interval_counts_from_the_return_of_a_listener(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses(assigned_s=INTERVAL_S - 1)
        async with await joined(broker, losses, **member) as consumer:
            await asyncio.sleep(INTERVAL_S - 1)
            await consumer.poll(0)
            assert losses.lost == 0

    in_virtual_time(scenario)


@pytest.mark.parametrize("call", ["close", "unsubscribe"])
def test_leaving_takes_longer_than_the_interval_and_loses_nothing(member: dict[str, Any], call: str) -> None:
    async def scenario(broker: SimBroker) -> None:
        losses = Losses()
        consumer = await joined(broker, losses, **member)
        broker.machine.pause()
        ending = asyncio.ensure_future(getattr(consumer, call)())
        await asyncio.sleep(LONG_S)
        broker.machine.resume()
        await ending
        assert losses.lost == 0
        await consumer.close()
        async with broker.consumer(group_id="g") as other:
            assert await other.committed(T0) is not None

    in_virtual_time(scenario)


def test_automatic_commits_go_on_inside_of_one_long_poll(member: dict[str, Any]) -> None:
    async def scenario(broker: SimBroker) -> None:
        async with (
            await joined(broker, **member, auto_commit_interval_ms=2_000) as consumer,
            broker.consumer(group_id="g") as other,
        ):
            poll = asyncio.ensure_future(consumer.poll(LONG_S))
            await asyncio.sleep(1)
            assert await other.committed(T0) is None, "the interval is not over"
            broker.machine.pause()  # the first attempt gets no answer, and must not be the last
            await asyncio.sleep(1.5)
            broker.machine.kill()
            broker.machine.start()
            assert await broker.machine.wait_up()
            await asyncio.sleep(4)
            stored = await other.committed(T0)
            assert stored is not None
            assert stored.offset == 1
            assert not poll.done()
            poll.cancel()
            await asyncio.wait([poll])

    in_virtual_time(scenario)


def test_a_refused_join_is_raised_once_and_not_tried_again_behind_the_caller() -> None:
    class Joins:
        """Counts them."""

        count = 0

        def sent(self, request: Request, message: Any, version: int) -> None:
            self.count += isinstance(message, JoinGroupRequest)

        def answered(self, request: Request, response: Any, version: int) -> None: ...

        def failed(self, request: Request, error: Any) -> None: ...

    async def scenario(broker: SimBroker) -> None:
        settings = {"group_id": "g", "group_protocol": "classic", "partition_assignment_strategy": "roundrobin"}
        async with await joined(broker, **settings), broker.consumer(group_id="g", group_protocol="classic") as other:
            joins = other._core.parts.runner.observer = Joins()
            other.subscribe(["t"])
            for expected in (1, 2):
                with pytest.raises(InconsistentGroupProtocolError):
                    await other.poll(None)
                await asyncio.sleep(1)
                assert joins.count == expected

    in_virtual_time(scenario)


def test_the_synchronous_iterator_hears_of_a_record_after_a_silence(broker: Broker, topic: str, member: dict[str, Any]) -> None:
    member |= {"group_id": topic, "max_poll_interval_ms": 100, "auto_commit_interval_ms": 50}
    with Consumer[bytes, bytes](broker.bootstrap_servers, **member) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        assert consumer.poll(0.3) == []  # three intervals long
        assert len(consumer.assignment()) == 2
        later = threading.Timer(0.3, broker.produce, (topic,), {"value": b"late", "partition": 0})
        later.start()
        assert next(iter(consumer)).value == b"late"
        later.join()
