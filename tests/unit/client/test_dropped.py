"""Clients that are dropped without `close`, of both kinds: a ResourceWarning, and a log line for losses."""

import asyncio
import gc
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin, Consumer, Producer, aio
from ottla.client.faces import consumer_dropped, on_loop, producer_dropped
from ottla.testing import Broker

logger = logging.getLogger("ottla.client.producer")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("t")
        broker.produce("t", value=b"v")
        yield broker


@pytest.mark.parametrize(
    ("unsent", "text"), [(1, "1 record that it had not sent is lost"), (2, "2 records that it had not sent are")]
)
def test_unsent_records_are_counted(unsent: int, text: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(ResourceWarning, match="a producer was dropped without close"):
        producer_dropped(logger, unsent)
    assert text in caplog.text


def test_nothing_is_lost_with_a_producer_that_has_sent_everything(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(ResourceWarning):
        producer_dropped(logger, 0)
    assert not caplog.records


def test_a_consumer_without_a_group_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(ResourceWarning, match="a consumer was dropped without close"):
        consumer_dropped(logger, None)
    assert not caplog.records


def test_a_loop_that_is_closed_is_left_alone() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    on_loop(loop, lambda: pytest.fail("called on a closed loop"))


def drop(owners: list[Any]) -> None:
    """Forget the client in the list, which is its only reference."""
    owners.clear()
    gc.collect()


@pytest.fixture
def own_thread() -> Callable[[str], threading.Thread]:
    """Finds the thread of a name that this test has started: other tests of this process may have clients open."""
    others = set(threading.enumerate())

    def find(name: str) -> threading.Thread:
        (found,) = (each for each in set(threading.enumerate()) - others if each.name == name)
        return found

    return find


def await_end(thread: threading.Thread) -> None:
    thread.join(HANG_S)
    assert not thread.is_alive(), f"the thread {thread.name} goes on"


def test_a_dropped_consumer_ends_its_thread_and_says_so(
    broker: Broker, caplog: pytest.LogCaptureFixture, own_thread: Callable[[str], threading.Thread]
) -> None:
    owners: list[Any] = [Consumer(broker.bootstrap_servers, group_id="sync", auto_offset_reset="earliest")]
    owners[0].subscribe(["t"])
    assert len(owners[0].poll(HANG_S)) == 1
    thread = own_thread("ottla-consumer")
    with pytest.warns(ResourceWarning, match="consumer was dropped"):
        drop(owners)
    assert "a consumer of group sync was dropped without close(): its last offsets are not committed" in caplog.text
    await_end(thread)


def test_a_dropped_producer_ends_its_thread(broker: Broker, own_thread: Callable[[str], threading.Thread]) -> None:
    owners: list[Any] = [Producer(broker.bootstrap_servers)]
    owners[0].send("t", b"v").result(HANG_S)
    thread = own_thread("ottla-producer")
    with pytest.warns(ResourceWarning, match="producer was dropped"):
        drop(owners)
    await_end(thread)


def test_a_dropped_asyncio_producer_says_what_is_lost(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        owners: list[Any] = [aio.Producer(broker.bootstrap_servers, linger_ms=60_000, delivery_timeout_ms=120_000)]
        await owners[0].send("t", b"v")
        with pytest.warns(ResourceWarning, match="producer was dropped"):
            drop(owners)
        await asyncio.sleep(0)  # what it has left on the loop ends

    asyncio.run(body())
    assert "1 record that it had not sent is lost" in caplog.text


def test_a_dropped_asyncio_consumer_says_so(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        owners: list[Any] = [aio.Consumer(broker.bootstrap_servers, group_id="aio", auto_offset_reset="earliest")]
        owners[0].subscribe(["t"])
        assert await owners[0].poll(HANG_S)
        with pytest.warns(ResourceWarning, match="consumer was dropped"):
            drop(owners)
        await asyncio.sleep(0)

    asyncio.run(body())
    assert "a consumer of group aio was dropped without close()" in caplog.text


def test_a_dropped_admin_ends_its_thread_and_says_so(broker: Broker, own_thread: Callable[[str], threading.Thread]) -> None:
    owners: list[Any] = [Admin(broker.bootstrap_servers)]
    assert "t" in owners[0].list_topics()
    thread = own_thread("ottla-admin")
    with pytest.warns(ResourceWarning, match="an Admin was dropped without close"):
        drop(owners)
    await_end(thread)


def test_a_dropped_asyncio_admin_says_so(broker: Broker) -> None:
    async def body() -> None:
        owners: list[Any] = [aio.Admin(broker.bootstrap_servers)]
        assert "t" in await owners[0].list_topics()
        cluster = owners[0]._core._cluster
        with pytest.warns(ResourceWarning, match="an Admin was dropped without close"):
            drop(owners)
        await asyncio.sleep(0)
        assert cluster.pool.is_closed

    asyncio.run(body())


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_an_admin_lives_as_long_as_what_with_timeout_returned(broker: Broker) -> None:
    async def body() -> None:
        limited = aio.Admin(broker.bootstrap_servers).with_timeout(HANG_S)
        gc.collect()
        assert "t" in await limited.list_topics()
        await limited.close()
        aio.Admin(broker.bootstrap_servers)  # never used: there is nothing to close

    limited = Admin(broker.bootstrap_servers).with_timeout(HANG_S)
    gc.collect()
    assert "t" in limited.list_topics()
    limited.close()
    asyncio.run(body())
    del limited
    gc.collect()


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_clients_that_are_closed_say_nothing(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with aio.Producer(broker.bootstrap_servers) as producer, aio.Consumer(broker.bootstrap_servers) as consumer:
            async with aio.Admin(broker.bootstrap_servers) as admin:
                await admin.list_topics()
            await producer.send("t", b"v")
            consumer.assign(("t", 0))

    with Producer(broker.bootstrap_servers) as producer, Consumer(broker.bootstrap_servers) as consumer:
        with Admin(broker.bootstrap_servers) as admin:
            admin.list_topics()
        producer.send("t", b"v")
        consumer.assign(("t", 0))
    asyncio.run(body())
    del producer, consumer, admin
    gc.collect()
    assert "dropped" not in caplog.text


def test_a_process_that_exits_with_an_open_consumer_says_so(broker: Broker) -> None:
    program = (
        "from ottla import Consumer\n"
        f"consumer = Consumer({broker.bootstrap_servers!r}, group_id='exits')\n"
        "consumer.subscribe(['t'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert "a consumer of group exits was dropped without close()" in ended.stderr
