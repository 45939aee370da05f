"""Ottla's producers against a real broker, read back with another library where what is stored matters."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.clients import CLIENTS, CODECS, ConsumerOptions, Incoming
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import make_topic

from ottla.errors import KafkaError, RecordTooLargeError

WAIT_S = 60
GOLDEN_KEYS = Path(__file__).parents[2] / "golden" / "clients" / "keys.jsonl.gz"


def stored(bootstrap: str, topic: str, partition: int, count: int) -> list[Incoming]:
    """The first records of a partition, as confluent-kafka reads them."""
    return list(CLIENTS["confluent"]().consume(bootstrap, topic, [partition], -2, count, ConsumerOptions()))


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks(bootstrap: str, face: Faces, topic: str, acks: Any) -> None:
    make_topic(bootstrap, topic)
    producer = face.producer(bootstrap, acks=acks, enable_idempotence=acks == "all")
    found = [producer.send(topic, b"%d" % number) for number in range(100)]
    results = [delivery.result(WAIT_S) for delivery in found]
    assert {(each.topic, each.partition) for each in results} == {(topic, 0)}
    assert [each.offset for each in results] == ([-1] * 100 if acks == 0 else list(range(100)))
    assert [each.value for each in stored(bootstrap, topic, 0, 100)] == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec(bootstrap: str, face: Faces, topic: str, codec: str) -> None:
    make_topic(bootstrap, topic)
    producer = face.producer(bootstrap, compression_type=codec, linger_ms=20)
    values = [b"%d-" % number * 50 for number in range(500)]
    for value in values:
        producer.send(topic, value)
    producer.flush(WAIT_S)
    assert [each.value for each in stored(bootstrap, topic, 0, 500)] == values


def test_keys_headers_and_timestamps(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = face.producer(bootstrap)
    headers = (("h", b"1"), ("h", b"2"), ("empty", b""), ("none", None))
    result = producer.send(topic, b"v", b"k", timestamp=1_700_000_000_123, headers=headers).result(WAIT_S)
    assert result.timestamp == 1_700_000_000_123
    producer.send(topic, None, b"k").result(WAIT_S)
    producer.send(topic, b"", None).result(WAIT_S)
    first, tombstone, empty = stored(bootstrap, topic, 0, 3)
    assert (first.key, first.value, first.timestamp_ms, first.headers) == (b"k", b"v", 1_700_000_000_123, headers)
    assert (tombstone.key, tombstone.value) == (b"k", None)
    assert (empty.key, empty.value) == (None, b"")


def test_timestamp_of_the_broker(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, configs={"message.timestamp.type": "LogAppendTime"})
    result = face.producer(bootstrap).send(topic, b"v", timestamp=1000).result(WAIT_S)
    (record,) = stored(bootstrap, topic, 0, 1)
    assert result.timestamp == record.timestamp_ms > 1000


def test_order_of_each_key(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 3)
    producer = face.producer(bootstrap, linger_ms=0, batch_size=200)
    sent = [(b"%d" % (number % 7), b"%d" % number) for number in range(1000)]
    results = [producer.send(topic, value, key) for key, value in sent]
    where = {key: delivery.result(WAIT_S).partition for (key, _), delivery in zip(sent, results, strict=True)}
    counts = [sum(where[key] == partition for key, _ in sent) for partition in range(3)]
    for partition in range(3):
        found = [(each.key, each.value) for each in stored(bootstrap, topic, partition, counts[partition])]
        assert found == [(key, value) for key, value in sent if where[key] == partition]


def test_partition_of_a_key_is_kafkas(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 12)
    with gzip.open(GOLDEN_KEYS, "rt") as file:
        cases = [json.loads(line) for line in file][:200]
    expected = {bytes.fromhex(case["key"]): dict(map(tuple, case["partitions"])).get(12) for case in cases}
    producer = face.producer(bootstrap)
    deliveries = {key: producer.send(topic, b"", key) for key in expected}
    assert {key: delivery.result(WAIT_S).partition for key, delivery in deliveries.items()} == expected


def test_partition_given_by_the_caller(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 3)
    producer = face.producer(bootstrap)
    assert [producer.send(topic, b"", b"k", partition=each).result(WAIT_S).partition for each in range(3)] == [0, 1, 2]
    with pytest.raises((ValueError, KafkaError), match="partition 3"):
        producer.send(topic, b"", partition=3)


def test_records_without_a_key_reach_every_partition(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 3)
    producer = face.producer(bootstrap, batch_size=1000)
    deliveries = [producer.send(topic, b"x" * 100) for _ in range(1000)]
    assert {delivery.result(WAIT_S).partition for delivery in deliveries} == {0, 1, 2}


def test_large_record_is_refused_at_the_call(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = face.producer(bootstrap, max_request_size=10_000)
    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
        producer.send(topic, b"x" * 10_000)
    assert producer.send(topic, b"x" * 5_000).result(WAIT_S).offset == 0


def test_record_too_large_for_the_topic(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, configs={"max.message.bytes": 1000})
    producer = face.producer(bootstrap, linger_ms=50)
    small = [producer.send(topic, b"y" * 300) for _ in range(10)]  # one batch that is too large, and fits when split
    large = producer.send(topic, b"x" * 2000)
    with pytest.raises(RecordTooLargeError):
        large.result(WAIT_S)
    assert [delivery.result(WAIT_S).offset for delivery in small] == list(range(10))


def test_first_record_creates_its_topic(bootstrap: str, face: Faces, topic: str) -> None:
    producer = face.producer(bootstrap)
    assert producer.send(topic, b"v").result(WAIT_S).offset == 0
    assert len(producer.partitions_for(topic)) == 3


def test_delivery_callback(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    called: list[Any] = []
    producer = face.producer(bootstrap)
    producer.send(topic, b"v", on_delivery=lambda metadata, error: called.append((metadata.offset, error)))
    producer.flush(WAIT_S)
    assert called == [(0, None)]


def test_close_sends_what_is_left(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    with face.producer(bootstrap, linger_ms=60_000) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
    assert len(stored(bootstrap, topic, 0, 10)) == 10
