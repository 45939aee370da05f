"""`Tracing`: spans of OpenTelemetry from the producer to the handler of a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from tests.support.peers.ottla_clients import Faces

from ottla import Tracing
from ottla.errors import SerializationError
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def handled(broker: Broker, face: Faces, topic: str, tracing: Tracing) -> Any:
    consumer = face.consumer(
        broker.bootstrap_servers,
        client_id="c",
        group_id=topic,
        auto_offset_reset="earliest",
        interceptors=[tracing],
    )
    consumer.subscribe(topic)
    [record] = consumer.poll(30)
    return record


@pytest.mark.parametrize("kind", ["sync", pytest.param("aio", marks=pytest.mark.slow)])
def test_handler_is_linked_to_the_producer(
    kind: str, broker: Broker, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    topic = f"traced-{kind}"
    broker.create_topic(topic)
    with Faces(kind) as face:
        producer = face.producer(broker.bootstrap_servers, client_id="p", interceptors=[Tracing(provider)])
        producer.send(topic, b"tea", key=b"t1", headers=[("traceparent", b"older"), ("own", b"1")]).result(30)
        tracing = Tracing(provider)
        record = handled(broker, face, topic, tracing)
        with tracing.traced(record) as span:
            assert trace.get_current_span() is span
    sent, processed = exporter.get_finished_spans()
    assert record.header("own") == b"1"
    assert len(record.headers) == 2, "the older context is replaced"
    common = {"messaging.system": "kafka", "messaging.destination.name": topic, "messaging.kafka.message.key": "t1"}
    place = {"messaging.destination.partition.id": "0", "messaging.kafka.offset": 0}
    operation = {"messaging.operation.name": "send", "messaging.operation.type": "send"}
    assert (sent.name, sent.kind) == (f"send {topic}", trace.SpanKind.PRODUCER)
    assert sent.attributes == common | place | operation | {"messaging.client.id": "p"}
    assert (processed.name, processed.kind) == (f"process {topic}", trace.SpanKind.CONSUMER)
    who = {"messaging.client.id": "c", "messaging.consumer.group.name": topic}
    operation = {"messaging.operation.name": "process", "messaging.operation.type": "process"}
    assert processed.attributes == common | place | operation | who
    assert [link.context.span_id for link in processed.links] == [sent.context.span_id]
    assert processed.parent is not None
    assert processed.parent.span_id == sent.context.span_id, "it is in the sender's trace"


def test_current_span_stays_the_parent_and_errors_are_recorded(
    broker: Broker, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    topic = "failing"
    broker.create_topic(topic)
    broker.produce(topic, "x")
    tracing = Tracing(provider)
    with Faces("sync") as face:
        record = handled(broker, face, topic, tracing)
    with (
        provider.get_tracer("test").start_as_current_span("outer") as outer,
        pytest.raises(ZeroDivisionError),
        tracing.traced(record),
    ):
        raise ZeroDivisionError("no")
    processed, _ = exporter.get_finished_spans()
    assert processed.parent is not None
    assert processed.parent.span_id == outer.get_span_context().span_id
    assert not processed.links, "its sender was not traced"
    assert processed.attributes is not None
    assert processed.attributes["error.type"] == "ZeroDivisionError"
    assert processed.status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in processed.events] == ["exception"]


def test_record_that_cannot_be_sent_ends_its_span_with_the_error(
    broker: Broker, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with Faces("sync") as face:
        producer = face.producer(broker.bootstrap_servers, interceptors=[Tracing(provider)])
        with pytest.raises(SerializationError):
            producer.send("unsent", 5)
    [span] = exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "SerializationError"


def test_context_travels_also_where_nothing_is_sampled(broker: Broker) -> None:
    tracing = Tracing(TracerProvider(sampler=ALWAYS_OFF))
    with Faces("sync") as face:
        producer = face.producer(broker.bootstrap_servers, interceptors=[tracing])
        producer.send("unsampled", b"x").result(30)
    [record] = broker.records("unsampled")
    flags = int(dict(record.headers)["traceparent"].rpartition(b"-")[2], 16)
    assert not flags & trace.TraceFlags.SAMPLED
    assert not tracing._sending
