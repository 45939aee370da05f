"""Ends of the synchronous producer: closed while threads wait in it, dropped without being closed, and by its callbacks."""

import asyncio
import gc
import threading
import time

import pytest

from ottla.client.admin.sync import Admin
from ottla.client.producer.sync import Producer
from ottla.errors import IllegalStateError, TimeoutError
from ottla.testing import Broker

HANG_S = 60


def test_close_ends_a_send_that_waits_for_memory(broker: Broker) -> None:
    """Its record must not end up in a batch that nothing sends, whose result would never come."""
    small = {"buffer_memory": 2_000, "batch_size": 1_000, "linger_ms": 0}
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers, **small)
    producer.send("t", b"v").result(HANG_S)
    raised: list[BaseException] = []

    def send_one_more() -> None:
        try:
            producer.send("t", b"x" * 900)
        except IllegalStateError as error:
            raised.append(error)

    with broker.faults.hang("Produce"):
        taken = [producer.send("t", b"x" * 900) for _ in range(2)]
        thread = threading.Thread(target=send_one_more)
        thread.start()
        deadline_s = time.monotonic() + HANG_S
        while not producer._core.accumulator.waiting_count and time.monotonic() < deadline_s:
            time.sleep(0.01)
        producer.close(0.2)
        thread.join(HANG_S)
    assert [str(error) for error in raised] == ["this producer is closed: make a new one"]
    assert all(isinstance(each.exception(HANG_S), IllegalStateError) for each in taken)
    assert all(batch.is_done for batch in producer._core.accumulator.incomplete)


@pytest.mark.parametrize("call", ["send", "partitions_for"])
def test_close_ends_calls_of_other_threads(broker: Broker, call: str) -> None:
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            getattr(producer, call)("t")
        except BaseException as error:
            raised.append(error)

    with broker.faults.hang("Metadata") as hung:
        thread = threading.Thread(target=wait)
        thread.start()
        hung.await_hits()
        producer.close(0.2)
        thread.join(HANG_S)
    (error,) = raised
    assert isinstance(error, IllegalStateError), repr(error)
    assert "this producer is closed" in str(error)


@pytest.mark.parametrize("is_commit", [True, False])
def test_close_waits_for_an_end_of_a_transaction_that_timed_out(broker: Broker, is_commit: bool) -> None:
    """Else the transaction stays open for transaction.timeout.ms, and read_committed consumers wait."""
    name = f"ends late {is_commit}"
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers, transactional_id=name, max_block_ms=3_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"v").result(HANG_S)
    fault = broker.faults.fail("EndTxn", "COORDINATOR_LOAD_IN_PROGRESS")
    with pytest.raises(TimeoutError, match="repeat the call"):
        (producer.commit_transaction if is_commit else producer.abort_transaction)()
    threading.Timer(0.5, fault.remove).start()
    producer.close()
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.describe_transactions([name])[name]
        while found.state.startswith("Prepare"):
            found = admin.describe_transactions([name])[name]
        assert found.state == ("CompleteCommit" if is_commit else "CompleteAbort")


@pytest.mark.parametrize("fault", [SystemExit, asyncio.CancelledError])
def test_a_callback_cannot_end_the_thread_of_its_producer(broker: Broker, fault: type[BaseException]) -> None:
    """What it raises reaches no caller: records that wait would wait for ever."""
    called: list[object] = []

    def fail(*_: object) -> None:
        raise fault

    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(3):
            producer.send("t", b"v", partition=0, on_delivery=fail)
        producer.send("t", b"v", partition=0, on_delivery=lambda stored, error: called.append(stored))
        producer.flush(HANG_S)
        assert len(called) == 1
        assert producer.send("t", b"v", partition=0).result(HANG_S).offset == 4


def test_a_producer_may_be_collected_in_a_thread_that_holds_its_lock(broker: Broker) -> None:
    """The collector runs wherever something is allocated, in the producer's own thread too."""
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers)
    producer.send("t", b"v").result(HANG_S)
    lock, own_thread = producer._core.accumulator.lock, producer._thread
    ended = threading.Event()
    cycle: list[object] = [producer]
    cycle.append(cycle)

    def collect() -> None:
        with lock:
            gc.collect()
        ended.set()

    del producer, cycle
    own_thread.post(collect)
    assert ended.wait(60)


def test_deliveries_of_a_dropped_producer_fail(broker: Broker) -> None:
    """They do not keep their producer: without an error, this would wait for ever."""
    with pytest.raises(IllegalStateError, match="dropped without close"):
        Producer(broker.bootstrap_servers, linger_ms=5_000).send("t", b"v").result(HANG_S)
