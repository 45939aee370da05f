"""aiokafka against the test fixture's broker with injected faults, on the loop of the test."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.testing import Broker

aiokafka = pytest.importorskip("aiokafka")


def run(test: Callable[[Broker], Awaitable[None]]) -> None:
    async def work() -> None:
        async with Broker() as broker:
            await broker.aio.create_topic("orders", partitions=2)
            await test(broker)

    asyncio.run(work())


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_lost_reply(is_idempotent: bool) -> None:
    async def test(broker: Broker) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, enable_idempotence=is_idempotent, acks="all", retry_backoff_ms=10
        )
        async with producer:
            fault = broker.faults.lose_reply("Produce", topic="orders", times=1)
            await producer.send_and_wait("orders", b"value", partition=0)
            assert fault.hits == 1
        found = [record.value for record in await broker.aio.records("orders")]
        assert found == ([b"value"] if is_idempotent else [b"value"] * 2)

    run(test)


def test_producer_and_consumer_recover_from_a_moved_leader() -> None:
    async def test(broker: Broker) -> None:
        producing = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1, times=2)
        fetching = broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1, times=2)
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=10) as producer:
            for index in range(2):
                await producer.send_and_wait("orders", f"value {index}".encode(), partition=index)
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", retry_backoff_ms=10
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition("orders", index) for index in range(2)])
        found = sorted([(await asyncio.wait_for(consumer.getone(), 60)).value for _ in range(2)])
        await consumer.stop()
        assert found == [b"value 0", b"value 1"]
        assert (producing.hits, fetching.hits) == (2, 2)

    run(test)


def test_client_times_out_on_a_hung_broker() -> None:
    async def test(broker: Broker) -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=500)
        async with producer:
            await producer.send_and_wait("orders", b"before", partition=0)
            with broker.faults.hang("Produce") as fault:
                with pytest.raises(aiokafka.errors.KafkaError):
                    await producer.send_and_wait("orders", b"during", partition=0)
                assert await broker.aio.await_hits(fault) >= 1
        assert [record.value for record in await broker.aio.records("orders")] == [b"before"]

    run(test)
