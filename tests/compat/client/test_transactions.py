"""Transactions of Ottla's producers: what they commit and abort, fencing, and offsets of consumer groups."""

import pytest
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transactions import await_all_decided, committed_offset, read

from ottla.errors import IllegalStateError, InvalidProducerEpochError, ProducerFencedError
from ottla.ids import TopicPartition

WAIT_S = 60


class Boom(Exception):
    """What the test's own code raises in a transaction."""


def test_committed_and_aborted(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 2)
    producer = face.producer(bootstrap, transactional_id=topic)
    producer.init_transactions()
    with producer.transaction():
        for number in range(10):
            producer.send(topic, f"kept-{number}".encode(), partition=number % 2)
    with pytest.raises(Boom), producer.transaction():  # noqa: PT012
        for number in range(10):
            delivery = producer.send(topic, f"dropped-{number}".encode(), partition=number % 2)
        delivery.result(WAIT_S)  # all of partition 1 is in the log
        raise Boom
    producer.begin_transaction()
    producer.send(topic, b"last", partition=0)
    producer.commit_transaction()
    kept = [f"kept-{number}" for number in range(10)]
    await_all_decided(bootstrap, topic, 2)
    assert sorted(read(bootstrap, topic, 2, committed=True)) == [*kept, "last"]
    assert any(value.startswith("dropped") for value in read(bootstrap, topic, 2, committed=False))


def test_empty_transactions(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = face.producer(bootstrap, transactional_id=topic)
    producer.init_transactions()
    with producer.transaction():
        pass
    producer.begin_transaction()
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"v")
    await_all_decided(bootstrap, topic, 1)
    assert read(bootstrap, topic, 1, committed=True) == ["v"]


def test_calls_in_the_wrong_order_are_refused(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = face.producer(bootstrap, transactional_id=topic)
    with pytest.raises(IllegalStateError, match="init_transactions"):
        producer.begin_transaction()
    producer.init_transactions()
    with pytest.raises(IllegalStateError, match="begin_transaction"):
        producer.send(topic, b"v")
    with pytest.raises(IllegalStateError):
        producer.commit_transaction()
    producer.begin_transaction()
    with pytest.raises(IllegalStateError):
        producer.begin_transaction()
    producer.send(topic, b"v")
    producer.commit_transaction()
    await_all_decided(bootstrap, topic, 1)
    assert read(bootstrap, topic, 1, committed=True) == ["v"]


def test_second_producer_fences_the_first(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    first = face.producer(bootstrap, transactional_id=topic)
    first.init_transactions()
    first.begin_transaction()
    first.send(topic, b"lost").result(WAIT_S)
    second = face.producer(bootstrap, transactional_id=topic)
    second.init_transactions()  # aborts the first one's transaction
    with second.transaction():
        second.send(topic, b"kept")
    with pytest.raises(ProducerFencedError):
        first.commit_transaction()
    with pytest.raises(ProducerFencedError):
        first.begin_transaction()
    await_all_decided(bootstrap, topic, 1)
    assert read(bootstrap, topic, 1, committed=True) == ["kept"]


def test_fenced_while_sending(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic)
    first = face.producer(bootstrap, transactional_id=topic)
    first.init_transactions()
    first.begin_transaction()
    first.send(topic, b"one").result(WAIT_S)
    second = face.producer(bootstrap, transactional_id=topic)
    second.init_transactions()
    with pytest.raises(InvalidProducerEpochError):
        first.send(topic, b"two").result(WAIT_S)
    with pytest.raises(InvalidProducerEpochError, match="abort the transaction"):
        first.commit_transaction()
    with pytest.raises(ProducerFencedError):
        first.abort_transaction()
    with pytest.raises(ProducerFencedError, match="close this producer"):
        first.begin_transaction()
    await_all_decided(bootstrap, topic, 1)
    assert read(bootstrap, topic, 1, committed=True) == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_are_committed_with_the_transaction(bootstrap: str, face: Faces, topic: str, protocol: str) -> None:
    """Read, process, write: an aborted round is read again, a committed one is not."""
    source, target = f"{topic}-in", f"{topic}-out"
    make_topic(bootstrap, source)
    make_topic(bootstrap, target)
    feeder = face.producer(bootstrap)
    for number in range(10):
        feeder.send(source, b"%d" % number)
    feeder.flush(WAIT_S)
    consumer = face.consumer(
        bootstrap, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False, group_protocol=protocol
    )
    consumer.subscribe([source])
    producer = face.producer(bootstrap, transactional_id=topic)
    producer.init_transactions()
    records = []
    while len(records) < 10:
        records += consumer.poll(WAIT_S)
    where = TopicPartition(source, 0)
    with pytest.raises(Boom), producer.transaction():  # noqa: PT012
        producer.send(target, b"dropped")
        producer.send_offsets_to_transaction({where: 10}, consumer.group_metadata())
        raise Boom
    assert consumer.committed(where, timeout=WAIT_S) is None
    with producer.transaction():
        for record in records[:6]:
            producer.send(target, b"out-" + record.value)
        producer.send_offsets_to_transaction({where: 6}, consumer.group_metadata())
    await_true(lambda: committed_offset(bootstrap, topic, source, 0) == 6, "the marker of the offsets")
    assert consumer.committed(where, timeout=WAIT_S).offset == 6
    await_all_decided(bootstrap, target, 1)
    assert read(bootstrap, target, 1, committed=True) == [f"out-{number}" for number in range(6)]
