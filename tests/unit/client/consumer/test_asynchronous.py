"""What only the asyncio face has: its loop, coroutines as listeners, cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.client.consumer.asynchronous import Consumer
from ottla.errors import IllegalStateError
from ottla.ids import TopicPartition
from ottla.testing import Broker

LONG = 60.0


@pytest.mark.asyncio
async def test_it_may_be_made_outside_of_a_loop() -> None:
    consumer: Consumer[bytes, bytes] = Consumer("localhost:9", group_id="g")
    assert "0 partitions" in repr(consumer)
    await consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.assignment()


def test_a_call_outside_of_a_loop_says_so() -> None:
    with pytest.raises(IllegalStateError, match="running event loop"):
        Consumer("localhost:9").assignment()


@pytest.mark.asyncio
async def test_a_cancelled_poll_leaves_it_usable(broker: Broker, topic: str) -> None:
    async with Consumer[bytes, bytes](broker.bootstrap_servers) as consumer:
        consumer.assign((topic, 0))
        await consumer.position((topic, 0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consumer.poll(None), 0.05)
        consumer.seek((topic, 0), 8)
        assert [record.offset for record in await consumer.poll(LONG)] == [8, 9]


@pytest.mark.asyncio
async def test_listeners_and_callbacks_may_be_coroutines(broker: Broker, topic: str) -> None:
    calls: list[Any] = []
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest"}
    async with Consumer[bytes, bytes](broker.bootstrap_servers, **given) as consumer:

        async def seek(partitions: set[TopicPartition]) -> None:
            for each in partitions:
                assert await consumer.committed(each) is None
                consumer.seek(each, 9)
            with pytest.raises(IllegalStateError, match="inside of a rebalance listener"):
                await consumer.poll(0)

        async def ended(offsets: Any, error: Any) -> None:
            calls.append((len(offsets), error))

        consumer.subscribe([topic], on_assigned=seek)
        found: list[Any] = []
        while len(found) < 2:
            found += await consumer.poll(LONG)
        assert {record.offset for record in found} == {9}
        consumer.commit_async(callback=ended)
        while not calls:
            await consumer.poll(0.05)
        assert calls == [(2, None)]


@pytest.mark.asyncio
async def test_an_iteration_can_be_left_and_taken_up_again(broker: Broker, topic: str) -> None:
    async with Consumer[bytes, bytes](broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign((topic, 0))
        offsets = []
        for stop in (3, 9):
            async for record in consumer:
                offsets.append(record.offset)
                if record.offset == stop:
                    break
        assert offsets == list(range(10))
