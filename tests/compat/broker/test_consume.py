"""Real clients read records from any position, with manually assigned partitions and no group."""

import threading
import time
from collections.abc import Callable

import pytest
from tests.support.peers.clients import CLIENTS, ClientLibrary, ConsumerOptions, Outgoing, ProducerOptions, Receipt
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer

JUNE_2020_MS = 1_592_000_000_000
BEGINNING, END = -2, -1


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> ClientLibrary:
    return CLIENTS[request.param]()


def fill(cluster: KafkaServer, topic: str, count: int, partitions: int = 1, size_bytes: int = 10) -> None:
    """Write numbered records, a second apart, in batches of about ten."""
    make_topic(cluster.bootstrap, topic, partitions)
    sent = [
        Outgoing(b"%0*d" % (size_bytes, number), partition=number % partitions, timestamp_ms=JUNE_2020_MS + 1000 * number)
        for number in range(count)
    ]
    outcomes = CLIENTS["confluent"]().produce(
        cluster.bootstrap, topic, sent, ProducerOptions(batch_bytes=20 * (size_bytes + 8))
    )
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)


def numbers(
    client: ClientLibrary, cluster: KafkaServer, topic: str, start: int, count: int, timeout_s: float = HANG_S
) -> list[int]:
    rows = client.consume(cluster.bootstrap, topic, [0], start, count, ConsumerOptions(timeout_s=timeout_s))
    assert [row.offset for row in rows] == [int(row.value or b"-1") for row in rows]
    return [row.offset for row in rows]


def test_from_the_beginning_and_from_any_offset(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 100)
    assert numbers(client, cluster, topic, BEGINNING, 100) == list(range(100))
    for start in (1, 37, 99):
        assert numbers(client, cluster, topic, start, 100 - start) == list(range(start, 100)), "also within a batch"


def test_nothing_beyond_the_end(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 10)
    assert numbers(client, cluster, topic, 10, 1, timeout_s=1) == []
    assert numbers(client, cluster, topic, END, 1, timeout_s=1) == []


def test_beyond_the_end_is_out_of_range(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 10)
    with pytest.raises(Exception, match=r"(?i)out.?of.?range|no offset"):
        numbers(client, cluster, topic, 11, 1, timeout_s=HANG_S)


def test_all_partitions_at_once(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 3000, partitions=3)
    rows = client.consume(cluster.bootstrap, topic, [0, 1, 2], BEGINNING, 3000, ConsumerOptions(partition_bytes_max=5000))
    for partition in range(3):
        mine = [row for row in rows if row.partition == partition]
        assert [row.offset for row in mine] == list(range(1000))
        assert [int(row.value or b"-1") for row in mine] == list(range(partition, 3000, 3))


def test_offsets_by_time(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 50)
    ask = {offset: JUNE_2020_MS + 1000 * offset for offset in (0, 1, 25, 49)}
    for offset, timestamp_ms in ask.items():
        assert client.offsets_for_time(cluster.bootstrap, topic, 0, timestamp_ms) == offset
        assert client.offsets_for_time(cluster.bootstrap, topic, 0, timestamp_ms - 999) == offset
    assert client.offsets_for_time(cluster.bootstrap, topic, 0, 0) == 0
    assert client.offsets_for_time(cluster.bootstrap, topic, 0, JUNE_2020_MS + 50_000) is None


def test_ends(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 7)
    assert client.ends(cluster.bootstrap, topic, 0) == (0, 7)


def test_read_committed_without_transactions(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 100)
    rows = client.consume(cluster.bootstrap, topic, [0], BEGINNING, 100, ConsumerOptions(isolation="read_committed"))
    assert [row.offset for row in rows] == list(range(100))


def test_large_backlog_is_read_in_small_fetches(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 20_000, size_bytes=500)
    options = ConsumerOptions(partition_bytes_max=200_000, bytes_max=300_000, timeout_s=HANG_S)
    rows = client.consume(cluster.bootstrap, topic, [0], BEGINNING, 20_000, options)
    assert [row.offset for row in rows] == list(range(20_000))


def test_waiting_reader_gets_a_record_at_once(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 1)
    options = ConsumerOptions(wait_ms_max=25_000)
    sent_s: list[float] = []

    def send_later() -> None:
        time.sleep(1.5)  # long enough for the reader's fetch to be parked at the broker, which is what is tested
        sent_s.append(time.monotonic())
        CLIENTS["confluent"]().produce(cluster.bootstrap, topic, [Outgoing(b"1", partition=0)], ProducerOptions(linger_ms=0))

    sender = threading.Thread(target=send_later)
    sender.start()
    rows = client.consume(cluster.bootstrap, topic, [0], 1, 1, options)
    received_s = time.monotonic()
    sender.join()
    assert [row.value for row in rows] == [b"1"]
    assert received_s - sent_s[0] < 20, "the record ended the wait, not the fetch's maximum wait"


def test_reader_that_wants_more_bytes_waits_for_them(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    fill(cluster, topic, 5)
    began = time.monotonic()
    rows = client.consume(cluster.bootstrap, topic, [0], BEGINNING, 5, ConsumerOptions(wait_ms_max=1500, bytes_min=100_000))
    assert [row.offset for row in rows] == list(range(5))
    assert time.monotonic() - began >= 1.5, "five small records are fewer bytes than the minimum it asked for"


def seek_and_pause_confluent(bootstrap: str, topic: str) -> list[int]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    seen: list[int] = []
    try:
        partition = TopicPartition(topic, 0, 40)
        consumer.assign([partition])
        seen += [message.offset() for message in consumer.consume(3, 10)]
        consumer.seek(TopicPartition(topic, 0, 5))
        seen += [message.offset() for message in consumer.consume(3, 10)]
        consumer.pause([partition])
        assert consumer.poll(0.5) is None
        consumer.resume([partition])
        seen += [message.offset() for message in consumer.consume(2, 10)]
    finally:
        consumer.close()
    return seen


def seek_and_pause_kafka_python(bootstrap: str, topic: str) -> list[int]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    partition = TopicPartition(topic, 0)
    seen: list[int] = []
    try:
        consumer.assign([partition])
        consumer.seek(partition, 40)
        seen += [next(consumer).offset for _ in range(3)]
        consumer.seek(partition, 5)
        seen += [next(consumer).offset for _ in range(3)]
        consumer.pause(partition)
        assert consumer.poll(500) == {}
        consumer.resume(partition)
        seen += [next(consumer).offset for _ in range(2)]
    finally:
        consumer.close()
    return seen


@pytest.mark.parametrize("steps", [seek_and_pause_confluent, seek_and_pause_kafka_python])
def test_seek_pause_resume(cluster: KafkaServer, topic: str, steps: Callable[[str, str], list[int]]) -> None:
    fill(cluster, topic, 100)
    assert steps(cluster.bootstrap, topic) == [40, 41, 42, 5, 6, 7, 8, 9]
