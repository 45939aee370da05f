"""A caller who waits does not linger: linger.ms is a minute, and every call that waits returns. Both faces."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from threading import Thread
from typing import Any

import pytest

from ottla.client.producer.asynchronous import Producer as AsyncProducer
from ottla.client.producer.sync import Producer
from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import TimeoutError
from ottla.testing import Broker

LONG: dict[str, Any] = {"linger_ms": 3_600_000, "delivery_timeout_ms": 4_000_000}
HANG_S = 30


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, HANG_S))


def test_threads_that_wait_for_a_record_do_not_linger(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, **LONG) as producer:
        assert producer.send("t", b"a", partition=0).result(HANG_S).offset == 0
        assert producer.send("t", b"b", partition=0, headers=[("h", b"1")]).exception(HANG_S) is None
        first, second = producer.send("t", b"c", partition=0), producer.send("t", b"d", partition=0)
        assert second.result(HANG_S).offset == 3
        assert first.done()
        assert producer.send_many("t", [b"e"] * 1_000).wait(HANG_S) == 1_000
        assert len(producer.send_many("t", [b"f"] * 3, [b"1", b"2", b"3"])[1:].result(HANG_S)) == 2
        producer.send("t", b"g")
        producer.flush(HANG_S)
        last = producer.send("t", b"h")
    assert last.result(0).topic == "t"


def test_record_that_nobody_waits_for_lingers(broker: Broker) -> None:
    called: list[object] = []
    with Producer(broker.bootstrap_servers, **LONG) as producer:
        lingering = producer.send("t", b"a", partition=0, on_delivery=lambda *outcome: called.append(outcome))
        producer.send("t", b"b", partition=1).result(HANG_S)  # the loop has looked
        with pytest.raises(TimeoutError):
            lingering.result(0)  # only looks
        assert not producer.send_many("t", [b"c"], partition=0).done()
        assert producer.metrics()["producer-metrics"]["record-send-total"] == 1
        assert not lingering.done()
        assert not called
    assert called


def test_tasks_that_wait_for_a_record_do_not_linger(broker: Broker) -> None:
    async def body() -> None:
        async with AsyncProducer(broker.bootstrap_servers, **LONG) as producer:
            assert (await (await producer.send("t", b"a", partition=0))).offset == 0
            many = await producer.send_many("t", [b"b"] * 1_000, [b"%d" % number for number in range(1_000)])
            assert len(await many) == 1_000
            await producer.send("t", b"c")
            await producer.flush(HANG_S)
            await producer.send("t", b"d")

    run(body())


def test_records_of_many_tasks_that_wait_share_batches(broker: Broker) -> None:
    batches: list[ProducerBatch] = []

    async def body() -> None:
        async with AsyncProducer(broker.bootstrap_servers, **LONG) as producer:
            producer.watch_batches(batches.append)
            await (await producer.send("t", b"first", partition=0))

            async def send() -> None:
                await (await producer.send("t", b"v", partition=0))

            await asyncio.gather(*(send() for _ in range(1_000)))

    run(body())
    assert sum(batch.count for batch in batches) == 1_001
    assert len(batches) <= 3


def test_threads_that_wait_at_the_same_time_are_all_answered(broker: Broker) -> None:
    stored: list[int] = []
    with Producer(broker.bootstrap_servers, **LONG) as producer:
        producer.send("t", b"first", partition=0).result(HANG_S)

        def send() -> None:
            stored.extend(producer.send("t", b"v", partition=0).result(HANG_S).offset for _ in range(20))

        threads = [Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * HANG_S)
    assert sorted(stored) == list(range(1, 161))


def test_steps_of_a_transaction_do_not_linger(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, transactional_id="lingering", **LONG) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"a", partition=0)
            producer.send_offsets_to_transaction({("t", 0): 5}, "group")
            producer.send("t", b"b", partition=0).result(HANG_S)
            producer.send("t", b"c", partition=1)
    assert broker.await_records("t", 3)


@pytest.mark.parametrize("way", ["send", "headers", "many", "arrow", "asyncio"])
def test_keyless_records_of_every_call_are_spread(broker: Broker, way: str) -> None:
    turns = count()

    def in_turn(topic: str, partitions: int, number: int) -> list[int]:
        return [next(turns) % partitions for _ in range(number)]

    values = [b"x" * 100] * 1_200
    if way == "asyncio":

        async def body() -> list[int]:
            async with AsyncProducer(broker.bootstrap_servers) as producer:
                producer._start().choose_partitions = in_turn
                return [(await each).partition for each in [await producer.send("t", value) for value in values]]

        found = asyncio.run(body())
    else:
        with Producer(broker.bootstrap_servers) as producer:
            producer._core.choose_partitions = in_turn
            if way == "many":
                handles = list(producer.send_many("t", values))
            elif way == "arrow":
                pyarrow = pytest.importorskip("pyarrow")
                handles = list(producer.send_many("t", pyarrow.array(values)))
            else:
                headers = [("h", b"1")] if way == "headers" else []
                handles = [producer.send("t", value, headers=headers) for value in values]
            found = [handle.result().partition for handle in handles]
    assert set(found) == {0, 1, 2}
    assert max(found.count(partition) for partition in range(3)) <= 900
