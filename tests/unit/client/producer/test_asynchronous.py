"""The asyncio producer against a real broker: the same core, so only what its face does itself."""

import asyncio

import pytest

from ottla.client.producer.asynchronous import Producer
from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.prepared_transactions import Finish
from ottla.client_core.producer.transactions import State
from ottla.errors import BufferExhaustedError, IllegalStateError, InvalidTopicError, RecordTooLargeError, TimeoutError
from ottla.testing import Broker

HANG_S = 60


def test_records_arrive_and_are_awaited(broker: Broker) -> None:
    async def run() -> None:
        async with Producer(broker.bootstrap_servers, value_serializer="str") as producer:
            sent = await producer.send("t", "v", b"k", partition=1, timestamp=5, headers=[("h", b"1")])
            with pytest.raises(IllegalStateError, match="await it"):
                sent.result()
            assert await sent == ("t", 1, 0, 5)
            many = await producer.send_many("t", [f"{number:04d}" for number in range(3_000)], partition=1)
            assert [metadata.offset for metadata in await many] == list(range(1, 3_001))
            await (await producer.send_many("t", ["last"], headers=[{"h": b"2"}], partition=1))
            assert len(await producer.partitions_for("t")) == 3
            assert producer.metrics()["producer-metrics"]["record-send-total"] == 3_002

    asyncio.run(asyncio.wait_for(run(), HANG_S))
    *records, last = broker.await_records("t", 3_002)
    assert [record.value for record in records] == [b"v", *(b"%04d" % number for number in range(3_000))]
    assert (last.value, list(last.headers)) == (b"last", [("h", b"2")])


def test_mistakes_are_raised_by_send(broker: Broker) -> None:
    async def run() -> None:
        async with Producer(broker.bootstrap_servers) as producer:
            for arguments, error in (
                (("no/name", b"v"), InvalidTopicError),
                (("t", b"x" * 2_000_000), RecordTooLargeError),
            ):
                with pytest.raises(error):
                    await producer.send(*arguments)
            with pytest.raises(ValueError, match="has no partition 3"):
                await producer.send("t", b"v", partition=3)
        with pytest.raises(IllegalStateError, match="closed"):
            await producer.send("t", b"v")

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_full_memory_suspends_then_raises(broker: Broker) -> None:
    small = {"buffer_memory": 5_000, "batch_size": 1_000, "max_block_ms": 300, "linger_ms": 0, "request_timeout_ms": 1_000}

    async def fill(producer: Producer[bytes, bytes]) -> None:
        for _ in range(100):
            await producer.send("t", b"x" * 500)
            assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] >= 0

    async def run() -> None:
        async with Producer(broker.bootstrap_servers, **small) as producer:
            await producer.partitions_for("t")
            broker.faults.hang("Produce", times=1)
            with pytest.raises(BufferExhaustedError):
                await fill(producer)

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_a_cancelled_send_leaves_the_producer_usable(broker: Broker) -> None:
    small = {"buffer_memory": 2_000, "batch_size": 1_000, "linger_ms": 0, "request_timeout_ms": 1_000}

    async def run() -> None:
        async with Producer(broker.bootstrap_servers, **small) as producer:
            await producer.partitions_for("t")
            with broker.faults.hang("Produce", times=1):
                waiting = [asyncio.ensure_future(producer.send("t", b"x" * 900)) for _ in range(5)]
                done, blocked = await asyncio.wait(waiting, timeout=0.2)
                assert len(done) == 2
                for task in blocked:
                    task.cancel()
                await asyncio.gather(*blocked, return_exceptions=True)
            assert (await (await producer.send("t", b"y" * 900))).topic == "t"

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_close_ends_a_send_that_waits_for_memory(broker: Broker) -> None:
    async def run() -> None:
        producer: Producer[bytes, bytes] = Producer(
            broker.bootstrap_servers, buffer_memory=2_000, batch_size=1_000, linger_ms=0
        )
        await (await producer.send("t", b"v"))
        with broker.faults.hang("Produce"):
            waiting = [asyncio.ensure_future(producer.send("t", b"x" * 900)) for _ in range(3)]
            await asyncio.wait(waiting, timeout=0.2)
            assert [task.done() for task in waiting] == [True, True, False]
            await producer.close(0.1)
            with pytest.raises(IllegalStateError, match="closed"):
                await waiting[2]

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_flush_and_metadata_time_out_with_a_reason(broker: Broker) -> None:
    async def run() -> None:
        async with Producer("127.0.0.1:1", max_block_ms=200) as producer:
            with pytest.raises(TimeoutError, match="metadata of topic t"):
                await producer.send("t", b"v")

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_a_commit_that_timed_out_gives_its_outcome_when_it_is_repeated_later(broker: Broker) -> None:
    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id="slow", max_block_ms=2_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"v")
            await producer.flush()
            with broker.faults.delay("EndTxn", 3.0, times=1), pytest.raises(TimeoutError, match="repeat the call"):
                await producer.commit_transaction()
            manager = producer._start().transactions
            assert manager is not None
            while manager.state is not State.READY:
                await asyncio.sleep(0.02)
            await producer.commit_transaction()
            with pytest.raises(IllegalStateError, match="begin_transaction first"):
                await producer.commit_transaction()

    asyncio.run(asyncio.wait_for(run(), HANG_S))


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_that_is_being_ended_takes_no_records(broker: Broker, is_commit: bool) -> None:
    """They would be sent behind its end, and begin a transaction that nobody ends."""

    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id=f"ending {is_commit}", linger_ms=0) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            with broker.faults.delay("Produce", 0.5, times=1):
                await producer.send("t", b"v", partition=0)
                await asyncio.sleep(0.1)
                ending = asyncio.ensure_future(producer.commit_transaction() if is_commit else producer.abort_transaction())
                await asyncio.sleep(0.1)
                with pytest.raises(IllegalStateError, match="being ended"):
                    await producer.send("t", b"late", partition=1)
                await ending
            assert not producer._start().accumulator.incomplete

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_a_send_that_waits_does_not_join_the_next_transaction(broker: Broker) -> None:
    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id="waits") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            with broker.faults.delay("Metadata", 1.0, times=1):
                sending = asyncio.ensure_future(producer.send("t", b"late"))
                await asyncio.sleep(0.1)
                await producer.commit_transaction()
                with pytest.raises(IllegalStateError, match="begin_transaction first"):
                    await sending

    asyncio.run(asyncio.wait_for(run(), HANG_S))


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_detached_transaction_is_ended_by_another_producer(broker: Broker, is_commit: bool) -> None:
    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id=f"left-{is_commit}") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"v")
            identity = await producer.detach_transaction()
            with pytest.raises(IllegalStateError, match="handed over"):
                await producer.send("t", b"w")
        async with Producer(broker.bootstrap_servers) as other:
            assert await other.finish_transaction(*identity, commit=is_commit) is Finish.DONE_NOW
            assert await other.finish_transaction(*identity, commit=is_commit) is Finish.DONE_BEFORE
        async with Producer(broker.bootstrap_servers, transactional_id=f"left-{is_commit}") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"v")
            await producer.flush()
            assert await producer.finish_transaction(*identity, commit=is_commit) is Finish.FENCED
            await producer.commit_transaction()

    asyncio.run(asyncio.wait_for(run(), HANG_S))


@pytest.mark.parametrize("api", ["EndTxn", "TxnOffsetCommit", "InitProducerId", "Produce", "FindCoordinator"])
@pytest.mark.parametrize("fault", ["lose_reply", "drop"])
def test_a_transaction_survives_lost_requests_and_replies(broker: Broker, api: str, fault: str) -> None:
    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id=f"{api}-{fault}", retry_backoff_ms=10) as producer:
            with getattr(broker.faults, fault)(api, times=1) as injected:
                await producer.init_transactions()
                for number in range(3):
                    async with producer.transaction():
                        sent = await producer.send("t", b"%d" % number, partition=0)
                        await producer.send_offsets_to_transaction({("t", 0): number}, "group")
                    assert (await sent).offset >= 0
                assert injected.hits == 1

    asyncio.run(asyncio.wait_for(run(), HANG_S))
    assert [record.value for record in broker.records("t")] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "Produce"])
def test_transactions_of_version_1(broker: Broker, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Metadata, "learn_features", lambda *arguments: None
    )  # the producer then takes the cluster for an old one

    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id=f"old-{api}", retry_backoff_ms=10) as producer:
            await producer.init_transactions()
            with broker.faults.lose_reply(api, times=1) as injected:
                for number in range(2):
                    async with producer.transaction():
                        await producer.send("t", b"%d" % number, partition=0)
                        await producer.send_offsets_to_transaction({("t", 0): number}, "group")
                assert injected.hits == 1
            with pytest.raises(KeyError):  # noqa: PT012
                async with producer.transaction():
                    await producer.send("t", b"aborted", partition=0)
                    raise KeyError
            async with producer.transaction():
                sent = await producer.send("t", b"2", partition=0)
            assert (await sent).offset >= 0

    asyncio.run(asyncio.wait_for(run(), HANG_S))
    assert [record.value for record in broker.records("t")] == [b"0", b"1", b"2"]


def test_watched_batches_are_told_once_before_flush_returns(broker: Broker) -> None:
    async def run() -> None:
        seen: list[tuple[tuple[str, int], int, bool]] = []
        async with Producer[bytes, bytes](broker.bootstrap_servers) as producer:
            producer.watch_batches(lambda batch: seen.append((batch.key, batch.count, batch.error is None)))
            await producer.send_many("t", [b"a", b"b"], partition=1)
            await producer.flush()
            assert seen == [(("t", 1), 2, True)]
            broker.faults.fail("Produce", "INVALID_RECORD")
            await producer.send("t", b"c", partition=0)
        assert seen[1:] == [(("t", 0), 1, False)]

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_a_transaction_call_that_times_out_raises(broker: Broker) -> None:
    """The timeout must not look like the outcome of the operation."""

    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id="late", max_block_ms=200) as producer:
            with broker.faults.hang("InitProducerId"), pytest.raises(TimeoutError, match="repeat the call"):
                await producer.init_transactions()

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_deliveries_of_a_dropped_producer_fail(broker: Broker) -> None:
    async def run() -> None:
        delivery = await Producer(broker.bootstrap_servers, linger_ms=5_000).send("t", b"v")
        with pytest.raises(IllegalStateError, match="dropped without close"):
            await delivery

    asyncio.run(asyncio.wait_for(run(), 10))


def test_a_transaction_block_whose_commit_fails_is_aborted(broker: Broker) -> None:
    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id="async block") as producer:
            await producer.init_transactions()
            broker.faults.fail("Produce", "INVALID_RECORD", times=1)
            with pytest.raises(IllegalStateError, match="must be aborted"):
                async with producer.transaction():
                    await producer.send("t", b"refused")
            async with producer.transaction():
                await producer.send("t", b"v")

    asyncio.run(asyncio.wait_for(run(), HANG_S))
    assert [record.value for record in broker.await_records("t", 1)] == [b"v"]
