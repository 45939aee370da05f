"""Ottla's consumers that choose their partitions themselves: positions, seeks, resets, isolation, offsets."""

from typing import Any

import pytest
from tests.support.peers.clients import CLIENTS, CODECS, Outgoing, ProducerOptions
from tests.support.peers.group_records import send_numbers
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import make_topic

from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import NoOffsetForPartitionError, OffsetOutOfRangeError
from ottla.ids import TopicPartition

WAIT_S = 60


def take(consumer: Any, count: int) -> list[Any]:
    """The next `count` records."""
    found: list[Any] = []
    while len(found) < count:
        records = consumer.poll(WAIT_S, max_records=count - len(found))
        assert records, f"{len(found)} of {count} records within {WAIT_S} s"
        found += records
    return found


def values(records: list[Any]) -> list[int]:
    return [int(record.value) for record in records]


def test_positions_and_seeks(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 2)
    send_numbers(bootstrap, topic, 2, 0, 40)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = face.consumer(bootstrap, auto_offset_reset="earliest")
    consumer.assign(one, two)
    assert consumer.assignment() == {one, two}
    assert sorted(values(take(consumer, 40))) == list(range(40))
    assert [consumer.position(one), consumer.position(two)] == [20, 20]
    consumer.pause(two)
    consumer.seek(one, 15)
    assert values(take(consumer, 5)) == [30, 32, 34, 36, 38]
    consumer.seek_to_beginning(one)
    first = take(consumer, 1)
    assert values(first) == [0]
    consumer.seek_to_end(one)
    assert consumer.position(one) == 20
    consumer.seek(first[0])
    assert values(take(consumer, 2)) == [0, 2]
    consumer.seek(one, 20)
    consumer.resume(two)
    consumer.seek(two, 18)
    assert values(take(consumer, 2)) == [37, 39]
    assert consumer.lag(two) == 0


def test_every_codec_and_field(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    headers = (("h", b"1"), ("h", b""), ("none", None))
    for codec in CODECS:
        records = [Outgoing(codec.encode(), b"k", 0, 1_700_000_000_000 + number, headers) for number in range(50)]
        CLIENTS["confluent"]().produce(bootstrap, topic, [*records, Outgoing(None, None, 0, 5)], ProducerOptions(codec=codec))
    consumer = face.consumer(bootstrap, auto_offset_reset="earliest")
    consumer.assign((topic, 0))
    found = take(consumer, 51 * len(CODECS))
    assert [record.offset for record in found] == list(range(51 * len(CODECS)))
    for index, codec in enumerate(CODECS):
        part = found[51 * index : 51 * index + 51]
        assert {(record.value, record.key, record.headers) for record in part[:50]} == {(codec.encode(), b"k", headers)}
        assert [record.timestamp for record in part[:50]] == [1_700_000_000_000 + number for number in range(50)]
        assert (part[50].value, part[50].key, part[50].timestamp, part[50].headers) == (None, None, 5, ())


def test_offsets_and_times(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    records = [Outgoing(b"%d" % number, partition=0, timestamp_ms=1_700_000_000_000 + 10 * number) for number in range(10)]
    CLIENTS["confluent"]().produce(bootstrap, topic, records, ProducerOptions())
    where = TopicPartition(topic, 0)
    consumer = face.consumer(bootstrap)
    assert consumer.beginning_offsets(where) == {where: 0}
    assert consumer.end_offsets(where) == {where: 10}
    found = consumer.offsets_for_times({where: 1_700_000_000_045})
    assert (found[where].offset, found[where].timestamp) == (5, 1_700_000_000_050)
    assert consumer.offsets_for_times({where: 1_800_000_000_000}) == {where: None}
    consumer.assign(where)
    consumer.seek_to_time(1_700_000_000_071)
    assert values(take(consumer, 2)) == [8, 9]
    assert consumer.list_topics()[topic] == 1
    assert [each.partition for each in consumer.partitions_for(topic)] == [0]


def test_commit_and_committed(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 2)
    send_numbers(bootstrap, topic, 2, 0, 20)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    settings = {"group_id": topic, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = face.consumer(bootstrap, **settings)
    consumer.assign(one)
    assert consumer.committed(one, two) == {one: None, two: None}
    records = take(consumer, 6)
    consumer.commit()
    assert consumer.committed(one).offset == 6
    consumer.commit(records[:2])
    assert consumer.committed(one).offset == 2
    consumer.commit({one: 4, two: OffsetAndMetadata(3, "note")})
    found = consumer.committed(one, two)
    assert (found[one].offset, found[two].offset, found[two].metadata) == (4, 3, "note")
    answers: list[Any] = []
    consumer.commit_async({one: 5}, lambda offsets, error: answers.append((offsets[one].offset, error)))
    while not answers:
        consumer.poll(0.05)
    assert answers == [(5, None)]
    consumer.close()
    second = face.consumer(bootstrap, **settings)
    second.assign(one, two)
    assert [second.position(one), second.position(two)] == [5, 3]


def test_auto_commit_when_closed(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    send_numbers(bootstrap, topic, 1, 0, 20)
    for first in (0, 7):
        with face.consumer(bootstrap, group_id=topic, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            assert values(take(consumer, 7)) == list(range(first, first + 7))


def test_error_in_the_callers_block_commits_nothing_of_the_last_poll(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    send_numbers(bootstrap, topic, 1, 0, 20)
    consumer = face.consumer(bootstrap, group_id=topic, auto_offset_reset="earliest")
    with pytest.raises(ZeroDivisionError), consumer:  # noqa: PT012
        consumer.subscribe([topic])
        take(consumer, 5)
        consumer.poll(WAIT_S, max_records=5)
        raise ZeroDivisionError
    checker = face.consumer(bootstrap, group_id=topic)
    assert checker.committed((topic, 0)).offset == 5


@pytest.mark.parametrize("reset", ["earliest", "latest", "by_duration:PT1H"])
def test_reset_without_a_committed_offset(bootstrap: str, face: Faces, topic: str, reset: str) -> None:
    make_topic(bootstrap, topic)
    old = [Outgoing(b"0", partition=0, timestamp_ms=1_700_000_000_000)]
    CLIENTS["confluent"]().produce(bootstrap, topic, old, ProducerOptions())
    send_numbers(bootstrap, topic, 1, 1, 1)
    consumer = face.consumer(bootstrap, auto_offset_reset=reset)
    consumer.assign((topic, 0))
    expected = {"earliest": 0, "latest": 2, "by_duration:PT1H": 1}[reset]
    assert consumer.position((topic, 0)) == expected
    send_numbers(bootstrap, topic, 1, 2, 1)
    assert values(take(consumer, 1)) == [expected]


def test_no_reset(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    send_numbers(bootstrap, topic, 1, 0, 3)
    consumer = face.consumer(bootstrap, group_id=topic, auto_offset_reset="none")
    consumer.assign((topic, 0))
    with pytest.raises(NoOffsetForPartitionError, match=topic):
        consumer.poll(WAIT_S)
    consumer.seek((topic, 0), 1)
    assert values(take(consumer, 2)) == [1, 2]
    consumer.seek((topic, 0), 50)
    with pytest.raises(OffsetOutOfRangeError, match=topic):
        consumer.poll(WAIT_S)


def test_offset_out_of_range_is_reset(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    send_numbers(bootstrap, topic, 1, 0, 3)
    consumer = face.consumer(bootstrap, auto_offset_reset="earliest")
    consumer.assign((topic, 0))
    consumer.seek((topic, 0), 50)
    assert values(take(consumer, 3)) == [0, 1, 2]


def test_read_committed(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = face.producer(bootstrap, transactional_id=topic)
    producer.init_transactions()
    with producer.transaction():
        producer.send(topic, b"0")
    producer.begin_transaction()
    producer.send(topic, b"1").result(WAIT_S)
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"2")
    producer.begin_transaction()
    producer.send(topic, b"3").result(WAIT_S)
    found = {}
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = face.consumer(bootstrap, auto_offset_reset="earliest", isolation_level=isolation)
        consumer.assign((topic, 0))
        (end,) = consumer.end_offsets((topic, 0)).values()
        records = take(consumer, 2 if isolation == "read_committed" else 4)
        found[isolation] = (end, values(records))
        if isolation == "read_committed":
            assert consumer.poll(0.2) == []  # the open transaction is not read
            producer.commit_transaction()
            assert values(take(consumer, 1)) == [3]
    assert found == {"read_committed": (6, [0, 2]), "read_uncommitted": (8, [0, 1, 2, 3])}
