"""Replicas that are near, behind, gone or too few: what Ottla's clients do and say."""

import logging
import time
from typing import Any

import pytest
from tests.support.peers.leaders import await_in_sync, await_leader, in_sync, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.three_nodes import ThreeNodes

from ottla import Admin, TopicPartition
from ottla.errors import KafkaError, LogTruncationError, NotEnoughReplicasError, TimeoutError


def read(consumer: Any, count: int) -> list[Any]:
    """Read so many records."""
    found: list[Any] = []
    deadline_s = time.monotonic() + HANG_S
    while len(found) < count:
        found += consumer.poll(0.5)
        assert time.monotonic() < deadline_s, f"{len(found)} of {count} records came within {HANG_S} s"
    return found


def received_bytes(client: Any, node: int) -> float:
    """How many bytes the client has received from a node."""
    return float(client.metrics().get(f"consumer-node-metrics{{node-id=node-{node}}}", {}).get("incoming-byte-total", 0))


def test_consumer_reads_from_the_replica_in_its_rack(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3]})
    producer = face.producer(nodes.bootstrap, **QUICK)
    sent = [producer.send(topic, b"%04d" % index * 250, partition=0) for index in range(500)]
    assert [each.result(HANG_S).offset for each in sent] == list(range(500))
    consumer = face.consumer(nodes.bootstrap, client_rack="b", auto_offset_reset="earliest", **QUICK)
    consumer.assign((topic, 0))
    assert [record.offset for record in read(consumer, 500)] == list(range(500))
    assert received_bytes(consumer, 2) > 500_000
    assert received_bytes(consumer, 1) + received_bytes(consumer, 3) < 100_000
    nodes.kill(2)
    producer.send(topic, b"after", partition=0).result(HANG_S)
    assert [record.value for record in read(consumer, 1)] == [b"after"]


def test_truncation_by_an_unclean_election_is_told(
    nodes: ThreeNodes, admin: Admin, face: Faces, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_replicated(admin, topic, {0: [1, 2]}, {"unclean.leader.election.enable": "true"})
    strict = face.consumer(nodes.bootstrap, auto_offset_reset="none", **QUICK)
    lenient = face.consumer(nodes.bootstrap, auto_offset_reset="latest", **QUICK)
    for consumer in (strict, lenient):
        consumer.assign((topic, 0))
        consumer.seek((topic, 0), 0)
    producer = face.producer(nodes.bootstrap, **QUICK)
    for index in range(10):
        producer.send(topic, b"both %d" % index).result(HANG_S)
    nodes.kill(2)
    await_true(lambda: in_sync(admin, topic)[0] == {1}, "node 2 to leave the in-sync replicas")
    for index in range(5):
        producer.send(topic, b"lost %d" % index).result(HANG_S)
    for consumer in (strict, lenient):
        assert len(read(consumer, 15)) == 15
    nodes.kill(1)
    nodes.start(2)
    await_leader(admin, topic, 0, 2)
    other = face.producer(nodes.bootstrap, **QUICK)
    for index in range(7):
        assert other.send(topic, b"new %d" % index).result(HANG_S).offset == 10 + index
    with pytest.raises(LogTruncationError, match="has lost records that were read: the position is 15") as told:
        read(strict, 1)
    place = TopicPartition(topic, 0)
    assert (told.value.positions, told.value.diverging) == ({place: 15}, {place: 10})
    with caplog.at_level(logging.WARNING, "ottla.client"):
        found = read(lenient, 7)
    assert [(record.offset, record.value) for record in found] == [(10 + index, b"new %d" % index) for index in range(7)]
    assert "has lost records that were read" in caplog.text
    strict.seek(place, told.value.diverging[place])
    assert [record.value for record in read(strict, 7)] == [b"new %d" % index for index in range(7)]


def test_partition_without_a_leader_is_waited_for(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, {0: [1], 1: [2], 2: [3]})
    make_replicated(admin, f"{topic}-late", {0: [2]})
    with Load(face, nodes.bootstrap, topic, 3) as load:
        load.await_more(100)
        nodes.kill(2)
        await_leader(admin, topic, 1, None)
        late = face.producer(nodes.bootstrap, delivery_timeout_ms=120_000, **QUICK)
        sent = late.send(f"{topic}-late", b"v")  # it has never seen a leader
        load.await_sent(100)
        nodes.start(2)
        load.await_more(100)
        assert sent.result(HANG_S).offset == 0


def test_too_few_replicas_are_retried_until_the_delivery_timeout(
    nodes: ThreeNodes, admin: Admin, face: Faces, topic: str
) -> None:
    make_replicated(admin, topic, {0: [1, 2]}, {"min.insync.replicas": 2})
    patient = face.producer(nodes.bootstrap, delivery_timeout_ms=150_000, **QUICK)
    hasty_settings = QUICK | {"request_timeout_ms": 2000, "delivery_timeout_ms": 4000}
    hasty = face.producer(nodes.bootstrap, **hasty_settings)
    patient.send(topic, b"first").result(HANG_S)
    hasty.send(topic, b"second").result(HANG_S)
    nodes.kill(2)
    await_true(lambda: in_sync(admin, topic)[0] == {1}, "node 2 to leave the in-sync replicas")
    kept = [patient.send(topic, b"kept %d" % index) for index in range(20)]
    began_s = time.monotonic()
    with pytest.raises(KafkaError) as refused:
        hasty.send(topic, b"refused").result(HANG_S)
    assert isinstance(refused.value, NotEnoughReplicasError | TimeoutError)
    assert time.monotonic() - began_s >= 3.9, "it was not retried until delivery.timeout.ms"
    nodes.start(2)
    assert [each.result(HANG_S).offset for each in kept] == list(range(2, 22))
    assert hasty.send(topic, b"last").result(HANG_S).offset == 22


def test_two_lost_nodes_end_a_send_at_the_delivery_timeout(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3]}, {"min.insync.replicas": 2})
    settings = QUICK | {"request_timeout_ms": 1500, "delivery_timeout_ms": 5000}
    producer = face.producer(nodes.bootstrap, **settings)
    producer.send(topic, b"first").result(HANG_S)
    nodes.kill(2, 3)
    lost = [producer.send(topic, b"lost %d" % index) for index in range(5)]
    for each in lost:
        with pytest.raises(KafkaError):
            each.result(HANG_S)
    nodes.start(2, 3)
    await_in_sync(admin, topic)
    last = producer.send(topic, b"last").result(HANG_S)
    consumer = face.consumer(nodes.bootstrap, auto_offset_reset="earliest", **QUICK)
    consumer.assign((topic, 0))
    values = [record.value for record in read(consumer, last.offset + 1)]
    # What timed out may be stored, since it was sent; but never twice and never out of order.
    assert values == [b"first", *[each for each in (b"lost %d" % index for index in range(5)) if each in values], b"last"]
