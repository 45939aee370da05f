"""What a consumer does without a group, in both faces, against a real broker."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from ottla.client.consumer.sync import Consumer
from ottla.errors import (
    ConcurrentUseError,
    CorruptBatchError,
    DeserializationError,
    IllegalStateError,
    InvalidGroupIdError,
    OffsetOutOfRangeError,
    TimeoutError,
    UnknownTopicOrPartitionError,
    WakeupError,
)
from ottla.ids import TopicPartition
from ottla.records.batch import iterate_batches
from ottla.testing import Broker

LONG = 60.0


def read(consumer: Any, count: int) -> list[Any]:
    """`count` records, however many polls they take."""
    found: list[Any] = []
    while len(found) < count:
        records = consumer.poll(LONG)
        assert records, f"{count} records were expected; {len(found)} came"
        found += records
    return found


def values(records: list[Any], partition: int) -> list[int]:
    return [int(record.value) for record in records if record.partition == partition]


def both(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


@pytest.fixture
def consumer(face: Any, broker: Broker, topic: str) -> Any:
    with face(broker.bootstrap_servers, auto_offset_reset="earliest") as made:
        made.assign(both(topic))
        yield made


def test_max_records_bounds_a_poll(consumer: Any) -> None:
    assert len(consumer.poll(LONG, max_records=3)) == 3
    with pytest.raises(ValueError, match="at least 1"):
        consumer.poll(max_records=0)


def test_batches_are_lists_by_partition(consumer: Any, topic: str) -> None:
    found: dict[TopicPartition, list[Any]] = {each: [] for each in both(topic)}
    while sum(map(len, found.values())) < 20:
        for each, records in consumer.batches(LONG).items():
            found[each] += records
    assert [values(found[each], each.partition) for each in both(topic)] == [list(range(10))] * 2


def test_an_iteration_counts_each_record_as_it_comes(consumer: Any, topic: str) -> None:
    first = TopicPartition(topic, 0)
    consumer.assign(first)
    for record in consumer:
        assert consumer.position(first) == record.offset + 1
        if record.offset == 3:
            break
    assert values(consumer.poll(LONG), 0) == [4, 5, 6, 7, 8, 9]


def test_pausing_in_an_iteration_loses_nothing(consumer: Any, topic: str) -> None:
    first = TopicPartition(topic, 0)
    consumer.assign(first)
    next(iter(consumer))
    consumer.pause(first)
    assert consumer.paused() == {first}
    assert consumer.poll(0.1) == []
    consumer.resume(first)
    assert values(read(consumer, 9), 0) == list(range(1, 10))


def test_the_cluster_is_described(consumer: Any, topic: str) -> None:
    assert [each.partition for each in consumer.partitions_for(topic)] == [0, 1]
    assert consumer.list_topics()[topic] == 2
    with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
        consumer.partitions_for("no-such-topic")


def test_lag_and_metrics_follow_the_reading(consumer: Any, topic: str) -> None:
    first = TopicPartition(topic, 0)
    consumer.assign(first)
    consumer.poll(LONG, max_records=4)
    assert consumer.lag(first) == 6
    group, metrics = "consumer-fetch-manager-metrics", consumer.metrics()
    assert (metrics[group]["records-consumed-total"], metrics[group]["records-lag-max"]) == (4, 6)
    assert metrics[f"{group}{{topic={topic},partition=0}}"]["records-lag"] == 6


def test_an_offset_out_of_range_is_raised_until_a_seek(face: Any, broker: Broker, topic: str) -> None:
    first = TopicPartition(topic, 0)
    with face(broker.bootstrap_servers, auto_offset_reset="none") as consumer:
        consumer.assign(first)
        consumer.seek(first, 99)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError, match="offset 99"):
                consumer.poll(LONG)
        consumer.seek(first, 9)
        assert values(read(consumer, 1), 0) == [9]


def test_a_poisoned_record_raises_and_a_seek_steps_past_it(face: Any, broker: Broker, topic: str) -> None:
    first = TopicPartition(topic, 0)

    def refuse_four(data: bytes) -> int:
        if data == b"4":
            raise ValueError("four")
        return int(data)

    with face(broker.bootstrap_servers, auto_offset_reset="earliest", value_deserializer=refuse_four) as consumer:
        consumer.assign(first)
        assert [record.value for record in read(consumer, 4)] == [0, 1, 2, 3]
        for _ in range(2):
            with pytest.raises(DeserializationError, match="seek to 5") as caught:
                consumer.poll(LONG)
            assert (caught.value.offset, caught.value.raw_value, consumer.position(first)) == (4, b"4", 4)
        consumer.seek(first, caught.value.offset + 1)
        assert [record.value for record in read(consumer, 5)] == [5, 6, 7, 8, 9]


def test_a_damaged_batch_raises_and_a_seek_steps_past_it(face: Any, topic: str, broker: Broker) -> None:
    first = TopicPartition(topic, 0)
    log = broker.data / str(first) / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    damaged = list(iterate_batches(data))[4]
    data[damaged.position + damaged.size - 2] ^= 1
    log.write_bytes(data)
    with face(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(first)
        assert values(read(consumer, 4), 0) == [0, 1, 2, 3]
        for _ in range(2):
            with pytest.raises(CorruptBatchError, match=r"damaged at offset 4.*CRC") as caught:
                consumer.poll(LONG)
            assert (caught.value.offset, caught.value.next_offset, consumer.position(first)) == (4, 5, 4)
        consumer.seek(first, caught.value.next_offset)
        assert values(read(consumer, 5), 0) == [5, 6, 7, 8, 9]


def test_wakeup_of_a_closed_consumer_does_nothing(broker: Broker, face: Any) -> None:
    """A signal handler or another thread may call it at any moment."""
    with face(broker.bootstrap_servers) as consumer:
        consumer.wakeup()
        consumer.close()
        consumer.wakeup()


def test_wakeup_ends_the_call_that_waits(consumer: Any, topic: str) -> None:
    read(consumer, 20)
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            consumer.poll(LONG)
        except WakeupError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    consumer.wakeup()
    thread.join(LONG)
    assert caught
    assert consumer.poll(0) == []


def test_a_consumer_used_twice_at_once_says_so(consumer: Any, topic: str) -> None:
    read(consumer, 20)
    started = threading.Event()

    def wait() -> None:
        started.set()
        with pytest.raises(WakeupError):
            consumer.poll(LONG)

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait(LONG)
    with pytest.raises(ConcurrentUseError, match="give each"):  # noqa: PT012 - the other thread may not wait yet
        for _ in range(100_000):
            consumer.poll(0)
    consumer.wakeup()
    thread.join(LONG)
    assert not thread.is_alive()


CALLS_WITH_TIMEOUTS: dict[str, tuple[Any, ...]] = {
    "poll": (),
    "batches": (),
    "consume_arrow": (),
    "consume_columns": (),
    "position": (("t", 0),),
    "commit": (),
    "committed": (("t", 0),),
    "offsets_for_times": ({("t", 0): 0},),
    "beginning_offsets": (("t", 0),),
    "end_offsets": (("t", 0),),
    "partitions_for": ("t",),
    "list_topics": (),
    "client_instance_id": (),
    "close": (),
}


def test_every_timeout_is_checked_at_the_call(consumer: Any) -> None:
    for name, args in CALLS_WITH_TIMEOUTS.items():
        for wrong, kind in (("5", TypeError), (-1, ValueError)):
            with pytest.raises(kind, match=rf"^{name}\(timeout={wrong!r}\): a timeout is a number of seconds"):
                getattr(consumer, name)(*args, timeout=wrong)
    consumer.close(None)  # as long as without an argument


def test_position_and_committed_take_partitions_alike(consumer: Any, topic: str) -> None:
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer.seek(one, 3)
    consumer.seek(two, 4)
    assert consumer.position(one) == consumer.position((topic, 0)) == consumer.position(topic, 0) == 3
    assert consumer.position(one, 5) == consumer.position(partition=one, timeout=5) == 3
    assert consumer.position([one]) == {one: 3}
    several: list[tuple[Any, ...]] = [(one, two), ([one, two],), ((one, two),), ({one, two},)]
    for given in several:
        assert consumer.position(*given) == {one: 3, two: 4}
        assert consumer.position(*given, timeout=5) == {one: 3, two: 4}
        assert set(consumer.end_offsets(*given)) == {one, two}
    assert consumer.position([]) == {}
    with pytest.raises(TypeError, match="a partition is a TopicPartition"):
        consumer.position([topic])


def test_misuse_is_told_at_the_call(face: Any, broker: Broker, topic: str) -> None:
    with face(broker.bootstrap_servers) as consumer:
        with pytest.raises(IllegalStateError, match="subscribe"):
            consumer.poll(0)
        with pytest.raises(InvalidGroupIdError, match="group_id"):
            consumer.subscribe([topic])
        consumer.assign(both(topic))
        with pytest.raises(IllegalStateError, match="not assigned"):
            consumer.seek(("other", 0), 5)
        with pytest.raises(TypeError, match="partition is"):
            consumer.assign([topic])
        with pytest.raises(InvalidGroupIdError, match="group_id"):
            consumer.commit()
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        consumer.close()
        with pytest.raises(IllegalStateError, match="closed"):
            consumer.poll(0)


def test_a_topic_that_does_not_exist_is_named_when_time_is_up(face: Any, broker: Broker) -> None:
    with face(broker.bootstrap_servers, allow_auto_create_topics=False) as consumer:
        consumer.assign(("no-such-topic", 0))
        assert consumer.poll(0.2) == []
        with pytest.raises(TimeoutError, match=r"no-such-topic-0 .*topic no-such-topic"):
            consumer.position(("no-such-topic", 0), timeout=0.2)


def test_ctrl_c_in_a_poll_loses_nothing(broker: Broker, topic: str) -> None:
    first = TopicPartition(topic, 0)
    with Consumer[bytes, bytes](broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(first)
        assert len(consumer.poll(LONG, max_records=2)) == 2
        take = consumer._reader.take

        def interrupted(limit: int) -> Any:
            take(limit)
            raise KeyboardInterrupt

        consumer._reader.take = interrupted  # type: ignore[method-assign,assignment]
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(LONG)
        consumer._reader.take = take  # type: ignore[method-assign]
        assert values(read(consumer, 8), 0) == list(range(2, 10))


def test_ctrl_c_while_waiting_leaves_it_usable(broker: Broker, topic: str) -> None:
    with Consumer[bytes, bytes](broker.bootstrap_servers, auto_offset_reset="latest") as consumer:
        consumer.assign((topic, 0))
        assert consumer.position((topic, 0)) == 10
        timer = threading.Timer(0.1, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(LONG)
        timer.join()
        broker.produce(topic, value=b"10", partition=0)
        assert values(read(consumer, 1), 0) == [10]
