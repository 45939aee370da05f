"""The synchronous producer against a real broker: results, faults, blocking, threads, forks and ends."""

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import pytest

from ottla.client.producer.sync import Producer
from ottla.errors import (
    BufferExhaustedError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    ProducerFencedError,
    RecordTooLargeError,
    SerializationError,
    TimeoutError,
)
from ottla.testing import Broker

HANG_S = 60


def values_of(broker: Broker, count: int, topic: str = "t") -> list[bytes]:
    return sorted(record.value or b"" for record in broker.await_records(topic, count, timeout=HANG_S))


def test_callbacks_have_run_when_flush_and_close_return(broker: Broker) -> None:
    offsets: list[int] = []
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers)
    producer.send("t", b"1", partition=0, on_delivery=lambda stored, _: offsets.append(stored.offset if stored else -1))
    producer.flush(HANG_S)
    assert offsets == [0]
    producer.send("t", b"2", partition=0, on_delivery=lambda stored, _: offsets.append(stored.offset if stored else -1))
    producer.close(HANG_S)
    assert offsets == [0, 1]


def test_send_many_stores_the_headers_of_each_record(broker: Broker) -> None:
    headers = [[("n", b"%d" % number)] if number % 2 else None for number in range(3_000)]
    with Producer(broker.bootstrap_servers, batch_size=1_000) as producer:
        producer.send_many("t", [b"v"] * 3_000, headers=headers, partition=1).wait(HANG_S)
    stored = [list(record.headers) for record in broker.await_records("t", 3_000, timeout=HANG_S)]
    assert stored == [each or [] for each in headers]


def test_serializers_and_nulls(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, key_serializer="str", value_serializer="json") as producer:
        producer.send("t", {"a": 1}, "k").result(HANG_S)
        producer.send("t", None, "k").result(HANG_S)
    records = broker.await_records("t", 2)
    assert [(record.key, record.value) for record in records] == [(b"k", b'{"a":1}'), (b"k", None)]


def test_callbacks_get_the_result_and_may_fail(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    def broken(metadata: Any, error: Any) -> None:
        raise RuntimeError("of the user's")

    with Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"1", partition=0, on_delivery=broken)
        second = producer.send("t", b"2", partition=0, on_delivery=lambda *both: seen.append(both))
        assert second.result(HANG_S).offset == 1
        producer.send("t", b"3", partition=0).result(HANG_S)
    assert seen == [(second.result(), None)]
    assert "on_delivery failed for a record of t-0" in caplog.text


def test_send_many_keeps_order_and_pairs_keys(broker: Broker) -> None:
    values = [b"%05d" % number for number in range(25_000)]
    with Producer(broker.bootstrap_servers) as producer:
        deliveries = producer.send_many("t", values, partition=1)
        assert deliveries.wait(HANG_S) == len(deliveries) == 25_000
        assert [metadata.offset for metadata in deliveries.result()] == list(range(25_000))
        keyed = producer.send_many("t", iter([b"a", b"b"]), iter([b"x", b"y"]))
        assert keyed[1].result(HANG_S).partition == producer.send("t", b"", b"y").result(HANG_S).partition
        with pytest.raises(ValueError, match="2 values and 1 keys"):
            producer.send_many("t", [b"a", b"b"], [b"x"])
    stored = [record.value for record in broker.await_records("t", 25_003, timeout=HANG_S) if record.partition == 1]
    assert stored[:25_000] == values


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "text"),
    [
        (("t", "text"), {}, SerializationError, "value_serializer"),
        (("t", b"v", 5), {}, SerializationError, "key_serializer"),
        (("no such/name", b"v"), {}, InvalidTopicError, "no such/name"),
        ((5, b"v"), {}, TypeError, "a topic's name is a str"),
        (("t", b"v"), {"partition": 9}, ValueError, "has no partition 9"),
        (("t", b"v"), {"partition": -1}, ValueError, "numbered from 0"),
        (("t", b"v"), {"partition": "0"}, TypeError, "a partition is an int"),
        (("t", b"v"), {"on_delivery": 5}, TypeError, "on_delivery .* must be a callable, not 5"),
        (("t", b"v"), {"timestamp": -5}, ValueError, "must be from 0"),
        (("t", b"v"), {"timestamp": 1.5}, TypeError, "milliseconds"),
        (("t", b"v"), {"headers": [("a", "text")]}, TypeError, "header 0"),
        (("t", b"v" * 2_000_000), {}, RecordTooLargeError, "max.request.size"),
    ],
)
def test_mistakes_are_raised_by_send(broker: Broker, arguments: Any, keywords: Any, error: type[Exception], text: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        producer.partitions_for("t")
        with pytest.raises(error, match=text):
            producer.send(*arguments, **keywords)
        assert producer.send("t", b"goes on").result(HANG_S).topic == "t"


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"])
def test_what_passes_is_retried(broker: Broker, error: str) -> None:
    with Producer(broker.bootstrap_servers, retry_backoff_ms=10) as producer:
        with broker.faults.fail("Produce", error, times=2) as fault:
            assert producer.send("t", b"v").result(HANG_S).offset == 0
        assert fault.hits == 2
        assert producer.metrics()["producer-metrics"]["record-retry-total"] == 2


def test_lost_replies_do_not_double_records(broker: Broker) -> None:
    broker.faults.lose_reply("Produce", times=2)
    with Producer(broker.bootstrap_servers, retry_backoff_ms=10, linger_ms=0, batch_size=100) as producer:
        sent = [producer.send("t", b"%03d" % number, partition=0) for number in range(50)]
        offsets = [each.result(HANG_S).offset for each in sent]
    assert offsets == list(range(50))
    assert values_of(broker, 50) == [b"%03d" % number for number in range(50)]
    assert len(broker.records("t")) == 50


def test_a_refusal_that_stays_reaches_the_handle(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        with broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=1):
            failed = producer.send("t", b"v")
            assert "TopicAuthorizationError" in repr(failed.exception(HANG_S))
            with pytest.raises(KafkaError, match="t-"):
                failed.result()
        assert producer.send("t", b"v").result(HANG_S).offset == 0


def test_a_batch_that_is_too_large_for_the_topic_is_split(broker: Broker) -> None:
    broker.create_topic("small", config={"max.message.bytes": 2_000})
    try:
        with Producer(broker.bootstrap_servers, batch_size=100_000, linger_ms=1_000) as producer:
            seen: list[Any] = []
            numbers = [b"%03d" % number for number in range(100)]
            sent = [producer.send("small", n + b"x" * 90, on_delivery=lambda *both: seen.append(both)) for n in numbers]
            producer.flush(HANG_S)
            assert [each.result().offset for each in sent] == list(range(100))
            assert [metadata.offset for metadata, _ in seen] == list(range(100))
            with pytest.raises(RecordTooLargeError):
                producer.send("small", b"x" * 5_000).result(HANG_S)
            assert producer.send("small", b"goes on").result(HANG_S).offset == 100
        assert [(record.value or b"")[:3] for record in broker.records("small")][:100] == numbers
    finally:
        broker.delete_topic("small")


def test_delivery_timeout_ends_the_wait_and_says_why(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, delivery_timeout_ms=400, request_timeout_ms=200, linger_ms=0) as producer:
        producer.partitions_for("t")
        with broker.faults.hang("Produce"), pytest.raises(TimeoutError, match=r"delivery\.timeout\.ms"):
            producer.send("t", b"v").result(HANG_S)
        assert producer.send("t", b"v").result(HANG_S).topic == "t"


def test_an_unknown_topic_blocks_for_max_block_ms_and_says_what_for(broker: Broker) -> None:
    broker.faults.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION")
    with Producer(broker.bootstrap_servers, max_block_ms=300) as producer:  # noqa: SIM117
        with pytest.raises(TimeoutError, match=r"metadata of topic missing: topic missing does not exist: .* check its name$"):
            producer.send("missing", b"v")


def test_no_broker_at_all_is_told() -> None:
    with Producer("127.0.0.1:1", max_block_ms=300) as producer, pytest.raises(TimeoutError, match="nothing listens at"):
        producer.send("t", b"v")


def test_full_memory_blocks_then_raises_and_frees_again(broker: Broker) -> None:
    small = {"buffer_memory": 20_000, "batch_size": 1_000, "max_block_ms": 300, "linger_ms": 0, "request_timeout_ms": 1_000}
    with Producer(broker.bootstrap_servers, **small) as producer:
        producer.partitions_for("t")

        def fill() -> None:
            for _ in range(1_000):
                producer.send("t", b"x" * 500)
                assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] >= 0

        with broker.faults.hang("Produce", times=1), pytest.raises(BufferExhaustedError, match=r"buffer\.memory"):
            fill()
    found = producer.metrics()["producer-metrics"]
    assert found["buffer-available-bytes"] == found["buffer-total-bytes"] == 20_000
    assert (found["buffer-exhausted-total"], found["waiting-threads"]) == (1, 0)
    assert found["bufferpool-wait-time-ns-total"] >= 290_000_000  # the deadline is on a clock of whole milliseconds


def test_threads_share_a_producer_through_a_small_buffer(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, buffer_memory=5_000, batch_size=500) as producer:
        errors: list[BaseException] = []

        def run(name: int) -> None:
            try:
                for number in range(300):
                    producer.send("t", b"%d-%04d" % (name, number), partition=name)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        producer.flush(HANG_S)
    assert errors == []
    by_partition: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for record in broker.await_records("t", 900, timeout=HANG_S):
        by_partition[record.partition].append(record.value or b"")
    assert by_partition == {name: [b"%d-%04d" % (name, number) for number in range(300)] for name in range(3)}


def test_a_lingering_batch_leaves_on_time_while_the_main_thread_is_busy() -> None:
    """The broker, in another process, stamps what it gets: within linger + 50 ms of the send.

    On a loaded machine any single record may be late, so the best of several counts, and the lateness of a thread that only
    sleeps, measured at the same time, is not the producer's.
    """
    linger_ms, allowed_ms = 20, 50
    late_ms: list[float] = []
    asleep_late_ms: list[float] = []

    def sleep() -> None:
        began_s = time.monotonic()
        time.sleep(linger_ms / 1000)
        asleep_late_ms.append((time.monotonic() - began_s) * 1000 - linger_ms)

    with Broker(process=True) as far, Producer(far.bootstrap_servers, linger_ms=linger_ms) as producer:
        far.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
        producer.send("t", b"warm").result(HANG_S)
        for _ in range(30):
            sleeper = threading.Thread(target=sleep)
            sleeper.start()
            begun_ms = time.time() * 1000
            sent = producer.send("t", b"v")
            end_s = time.monotonic() + HANG_S
            while not sent.done() and time.monotonic() < end_s:
                pass  # this thread takes all the time it can get
            late_ms.append(sent.result(HANG_S).timestamp - begun_ms - linger_ms)
            sleeper.join(HANG_S)
            if late_ms[-1] <= allowed_ms:
                break
    assert min(late_ms) >= -2, "it did not linger at all"
    assert min(late_ms) <= allowed_ms + min(asleep_late_ms), (late_ms, asleep_late_ms)


def test_control_c_while_blocked_leaves_the_producer_usable(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, linger_ms=0, request_timeout_ms=1_000) as producer:
        producer.partitions_for("t")
        with broker.faults.hang("Produce", times=1) as fault:
            sent = producer.send("t", b"v")
            fault.await_hits(1)
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                sent.result(HANG_S)
        broker.faults.clear()
        assert producer.send("t", b"w").result(HANG_S).topic == "t"


def test_a_callback_must_not_wait_for_its_own_producer(broker: Broker) -> None:
    caught: list[BaseException] = []

    def wait(metadata: Any, error: Any) -> None:
        later = producer.send("t", b"later", partition=0)
        for call in (later.result, producer.flush, producer.close):
            try:
                call()
            except (IllegalStateError, RuntimeError) as refused:
                caught.append(refused)

    with Producer(broker.bootstrap_servers) as producer:
        producer.partitions_for("t")
        producer.send("t", b"v", partition=0, on_delivery=wait).result(HANG_S)
        producer.flush(HANG_S)
    assert len(caught) == 3
    assert values_of(broker, 2) == [b"later", b"v"]


def test_close_sends_what_is_left_and_ends_the_producer(broker: Broker) -> None:
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers, linger_ms=60_000, delivery_timeout_ms=120_000)
    sent = producer.send("t", b"v")
    producer.close()
    assert sent.result().topic == "t"
    producer.close()
    for call in (lambda: producer.send("t", b"w"), producer.flush, lambda: producer.send_many("t", [b"w"])):
        with pytest.raises(IllegalStateError, match="closed"):
            call()


def test_close_that_runs_out_of_time_fails_and_counts_what_is_left(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers, linger_ms=0)
    producer.partitions_for("t")
    with broker.faults.hang("Produce"):
        sent = [producer.send("t", b"v") for _ in range(3)]
        producer.close(0.2)
    assert "before it had stored 3 records" in caplog.text
    with pytest.raises(IllegalStateError, match="before it had stored"):
        sent[0].result()


def test_flush_that_runs_out_of_time_says_how_much_is_left(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, request_timeout_ms=1_000) as producer:
        producer.partitions_for("t")
        with broker.faults.hang("Produce", times=1):
            producer.send("t", b"v")
            with pytest.raises(TimeoutError, match="1 record"):
                producer.flush(0.2)


def test_a_producer_that_is_dropped_says_how_many_records_are_lost(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    producer: Producer[bytes, bytes] = Producer(broker.bootstrap_servers, linger_ms=60_000, delivery_timeout_ms=120_000)
    producer.send("t", b"v")
    with caplog.at_level(logging.ERROR):
        del producer
        gc.collect()
    assert "1 record that it had not sent is lost" in caplog.text


def test_a_process_that_exits_without_close_says_so(broker: Broker) -> None:
    program = (
        "from ottla.client.producer.sync import Producer\n"
        f"producer = Producer({broker.bootstrap_servers!r}, linger_ms=60_000, delivery_timeout_ms=120_000)\n"
        "producer.send('t', b'v'); producer.send('t', b'w')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert "2 records" in ended.stderr


def test_a_forked_child_cannot_use_the_producer(broker: Broker) -> None:
    program = (
        "import os, sys\n"
        "from ottla.client.producer.sync import Producer\n"
        f"producer = Producer({broker.bootstrap_servers!r}, linger_ms=200)\n"
        "sent = producer.send('t', b'v')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        producer.send('t', b'w')\n"
        "    except Exception as error:\n"
        "        print(error, flush=True)\n"
        "    try:\n"
        "        sent.result(30)\n"
        "    except Exception as error:\n"
        "        print(error, flush=True)\n"
        "    producer.close()\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(sent.result(30).offset)\n"
        "producer.close()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert "1 record not sent at the time of the fork is sent there" in ended.stdout
    assert "only the process that has sent it learns what becomes of it" in ended.stdout
    assert ended.stdout.rstrip().endswith("0")
    assert [record.value for record in broker.records("t")] == [b"v"]


@pytest.mark.parametrize("partitioner", ["roundrobin", lambda topic, key, kb, value, vb, partitions, available: int(value) % 3])
def test_other_partitioners(broker: Broker, partitioner: Any) -> None:
    with Producer(broker.bootstrap_servers, partitioner=partitioner) as producer:
        found = [producer.send("t", b"%d" % number).result(HANG_S).partition for number in range(6)]
    assert found == [0, 1, 2, 0, 1, 2]


def test_fenced_producer_says_so_at_every_call(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers, transactional_id="fenced") as old:
        old.init_transactions()
        old.begin_transaction()
        old.send("t", b"old").result(HANG_S)
        with Producer(broker.bootstrap_servers, transactional_id="fenced") as new:
            new.init_transactions()
        with pytest.raises(ProducerFencedError):
            old.commit_transaction()
        for call in (old.begin_transaction, old.commit_transaction, old.abort_transaction, lambda: old.send("t", b"late")):
            with pytest.raises(ProducerFencedError, match="Now close this producer"):
                call()


def test_fenced_producer_that_is_dropped_is_freed(broker: Broker) -> None:
    def use() -> weakref.ref[Producer[Any, Any]]:
        old = Producer(broker.bootstrap_servers, transactional_id="dropped")
        old.init_transactions()
        old.begin_transaction()
        old.send("t", b"old").result(HANG_S)
        with Producer(broker.bootstrap_servers, transactional_id="dropped") as new:
            new.init_transactions()
        for call in (old.commit_transaction, old.begin_transaction):
            with pytest.raises(ProducerFencedError):
                call()
        return weakref.ref(old)

    dropped = use()
    gc.collect()
    assert dropped() is None


def test_watched_batches_are_told(broker: Broker) -> None:
    seen: list[tuple[tuple[str, int], int]] = []
    with Producer[bytes, bytes](broker.bootstrap_servers) as producer:
        producer.watch_batches(lambda batch: seen.append((batch.key, batch.count)))
        producer.send_many("t", [b"a", b"b"], partition=1)
        producer.flush()
        assert seen == [(("t", 1), 2)]


def test_a_transaction_block_whose_commit_fails_is_aborted(broker: Broker) -> None:
    """Its program has no other place to abort it, and could not begin the next one."""
    with Producer(broker.bootstrap_servers, transactional_id="block") as producer:
        producer.init_transactions()
        with (
            broker.faults.fail("Produce", "INVALID_RECORD", times=1),
            pytest.raises(IllegalStateError, match="must be aborted"),
            producer.transaction(),
        ):
            producer.send("t", b"refused")
        with producer.transaction():
            producer.send("t", b"v")
    assert values_of(broker, 1) == [b"v"]
