"""Interceptors of both clients and both faces: chains, faults, what they get, and what a client without them pays."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest
from tests.support.peers.ottla_clients import Faces

from ottla import ConsumerRecord, OffsetAndMetadata, Producer, ProducerRecord, TopicPartition
from ottla.errors import ConfigError, SerializationError
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(params=["sync", "aio"])
def face(request: pytest.FixtureRequest) -> Iterator[Faces]:
    with Faces(request.param) as faces:
        yield faces


class Recorder:
    """Writes down what it is called with, and marks records with its name."""

    def __init__(self, name: str = "recorder", *, is_faulty: bool = False) -> None:
        self.name = name
        self.is_faulty = is_faulty
        self.calls: list[Any] = []

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.is_faulty:
            raise RuntimeError(f"{self.name} is faulty")

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self._note("send", record.value)
        return record._replace(value=f"{record.value}{self.name}", headers=[*record.headers, (self.name, b"1")])

    def on_acknowledgement(self, metadata: Any, error: Any, headers: Any) -> None:
        self._note("acknowledgement", metadata.topic, metadata.offset, error, headers)

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        self._note("consume", [record.value for record in records])
        return [record for record in records if self.name not in record.value]

    def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self._note("commit", {each.partition: at.offset for each, at in offsets.items()})

    def close(self) -> None:
        self._note("close")


def test_chain_of_a_producer_skips_one_that_raises(
    broker: Broker, face: Faces, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"chain-{face.kind}"
    first, faulty, last = Recorder("a"), Recorder("b", is_faulty=True), Recorder("c")
    delivered: list[Any] = []
    producer = face.producer(broker.bootstrap_servers, value_serializer="str", interceptors=[first, faulty, last])
    with caplog.at_level(logging.WARNING, "ottla.client"):
        metadata = producer.send(topic, "x", on_delivery=lambda *found: delivered.append(found)).result(30)
        producer.close()
    [record] = broker.records(topic)
    assert (record.value, record.headers) == (b"xac", (("a", b"1"), ("c", b"1")))
    acknowledged = ("acknowledgement", topic, 0, None, record.headers)
    assert first.calls == [("send", "x"), acknowledged, ("close",)]
    assert faulty.calls == [("send", "xa"), acknowledged, ("close",)]
    assert last.calls == [("send", "xa"), acknowledged, ("close",)]
    assert delivered == [(metadata, None)]
    assert "raised in on_send" in caplog.text


def test_record_that_cannot_be_sent_is_acknowledged_with_its_error(broker: Broker, face: Faces) -> None:
    recorder = Recorder()
    producer = face.producer(broker.bootstrap_servers, interceptors=[recorder])  # the recorder makes a str of it
    with pytest.raises(SerializationError):
        producer.send("unsent", b"x")
    (_, (call, topic, offset, error, headers)) = recorder.calls
    assert (call, topic, offset, headers) == ("acknowledgement", "unsent", -1, (("recorder", b"1"),))
    assert isinstance(error, SerializationError)


def test_send_many_goes_through_interceptors_record_by_record(broker: Broker, face: Faces) -> None:
    topic, recorder = f"many-{face.kind}", Recorder("+")
    producer = face.producer(broker.bootstrap_servers, key_serializer="str", value_serializer="str", interceptors=[recorder])
    producer.send_many(topic, ["x", "y"], keys=["a", None], headers=[[("h", b"0")], None], partition=0)
    producer.send_many(topic, pyarrow.table({"value": ["z"], "partition": [0], "timestamp": [5]}))
    producer.flush()
    found = [(record.key, record.value, record.headers) for record in broker.records(topic)]
    mark = ("+", b"1")
    assert found == [(b"a", b"x+", (("h", b"0"), mark)), (None, b"y+", (mark,)), (None, b"z+", (mark,))]
    assert broker.records(topic)[2].timestamp == 5
    assert [call[:3] for call in recorder.calls if call[0] == "acknowledgement"] == [
        ("acknowledgement", topic, offset) for offset in range(3)
    ]


@pytest.mark.parametrize("call", ["poll", "batches"])
def test_chain_of_a_consumer_filters_and_skips_one_that_raises(broker: Broker, face: Faces, call: str) -> None:
    topic = f"consume-{face.kind}-{call}"
    broker.create_topic(topic)
    for value in ("x", "xc", "y"):
        broker.produce(topic, value)
    faulty, last = Recorder("b", is_faulty=True), Recorder("c")
    settings = {"group_id": topic, "auto_offset_reset": "earliest", "enable_auto_commit": False, "value_deserializer": "str"}
    consumer = face.consumer(broker.bootstrap_servers, interceptors=[faulty, last], **settings)
    consumer.subscribe(topic)
    found = getattr(consumer, call)(timeout=30)
    records = found if call == "poll" else found[TopicPartition(topic, 0)]
    assert [record.value for record in records] == ["x", "y"]
    consumer.commit()
    calls = [("consume", ["x", "xc", "y"]), ("commit", {0: 3})]
    assert faulty.calls == last.calls == calls
    consumer.commit_async({TopicPartition(topic, 0): 1})
    consumer.close()
    assert last.calls == [*calls, ("commit", {0: 1}), ("close",)]


def test_automatic_commits_are_told_to_interceptors(broker: Broker, face: Faces) -> None:
    topic, recorder = f"auto-{face.kind}", Recorder()
    broker.create_topic(topic)
    broker.produce(topic, "x")
    consumer = face.consumer(
        broker.bootstrap_servers, group_id=topic, auto_offset_reset="earliest", value_deserializer="str", interceptors=recorder
    )
    consumer.subscribe(topic)
    assert len(consumer.poll(30)) == 1
    consumer.close()
    assert recorder.calls[1:] == [("commit", {0: 1}), ("close",)]


class Configured:
    """An interceptor by its path."""

    made: list[Configured] = []  # noqa: RUF012 - the test reads it

    def __init__(self) -> None:
        self.made.append(self)

    def configure(self, settings: dict[str, Any]) -> None:
        self.client_id = settings["client.id"]

    def on_send(self, record: ProducerRecord) -> None:
        """Changes nothing."""


def test_class_by_its_path_is_made_and_configured(broker: Broker) -> None:
    path = "xml.dom.minidom:Document"  # any class that is no interceptor
    config = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "me"}
    with pytest.raises(ConfigError, match="has neither on_send nor on_acknowledgement"):
        Producer(config=config | {"interceptor.classes": path})
    with pytest.raises(ConfigError, match="is a Java class"):
        Producer(config=config | {"interceptor.classes": "org.example.Mine"})
    with Producer(config=config, interceptors=[Configured]) as producer:
        producer.send("configured", b"x").result(30)
    assert [each.client_id for each in Configured.made] == ["me"]
    assert [record.value for record in broker.records("configured")] == [b"x"]


def test_producer_without_interceptors_keeps_the_compiled_path(broker: Broker) -> None:
    with Producer(broker.bootstrap_servers) as producer, Producer(broker.bootstrap_servers, interceptors=Recorder()) as other:
        assert producer._plain_topics is producer._core.accumulator.topics
        assert producer._intake.interceptors is None
        assert other._plain_topics == {}
