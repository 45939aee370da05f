"""`Tracing`: spans of OpenTelemetry for records that are sent and handled. An interceptor; needs `opentelemetry-api`.

Names and attributes follow OpenTelemetry's semantic conventions for messaging. The context of the span that sends a record
travels in its headers, in the form of the propagator that is set (by default W3C's `traceparent`).

A span of `send` ends when the record is stored or has failed. The headers with the context, which interceptors get back with
the acknowledgement, say which span it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from ottla import __version__
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.interceptors import Headers, ProducerRecord
from ottla.client_core.producer.batch import RecordMetadata

_KEY_CHARS_MAX = 128


class Tracing:
    """Makes spans. Give each client one of its own: `Producer(..., interceptors=[Tracing()])`.

    `with tracing.traced(record):` around the handling of a record makes the consumer's span.
    """

    def __init__(self, tracer_provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("ottla", __version__, tracer_provider)
        self._client: dict[str, Any] = {"messaging.system": "kafka"}
        self._sending: dict[Headers, Span] = {}
        """Spans of records that are neither stored nor given up, by the headers that carry their context."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        """The client says who it is."""
        if settings.get("client.id"):
            self._client["messaging.client.id"] = settings["client.id"]
        if settings.get("group.id"):
            self._client["messaging.consumer.group.name"] = settings["group.id"]

    # Sending

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """A record is about to be sent: begin its span, and put the context into its headers."""
        attributes = self._attributes("send", record.topic, record.key)
        if record.value is None:
            attributes["messaging.kafka.message.tombstone"] = True
        span = self._tracer.start_span(f"send {record.topic}", kind=SpanKind.PRODUCER, attributes=attributes)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        added = tuple((key, value.encode()) for key, value in carrier.items())
        # A record that was consumed and is sent on has the headers of its first sender.
        headers = (*((key, value) for key, value in record.headers if key not in carrier), *added)
        if span.is_recording() and added:
            self._sending[added] = span
        else:
            span.end()
        return record._replace(headers=headers)

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None, headers: Headers) -> None:
        """A record is stored or has failed: end its span."""
        fields = set(propagate.get_global_textmap().fields)
        span = self._sending.pop(tuple(each for each in headers if each[0] in fields), None)
        if span is None:
            return
        if metadata.partition >= 0:
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
        if metadata.offset >= 0:
            span.set_attribute("messaging.kafka.offset", metadata.offset)
        if error is not None:
            _failed(span, error)
        span.end()

    def close(self) -> None:
        """The client is closed: nothing more is heard of records that are still on their way."""
        while self._sending:
            self._sending.popitem()[1].end()

    # Handling

    @contextmanager
    def traced(self, record: ConsumerRecord[Any, Any]) -> Iterator[Span]:
        """The span of handling one record: linked to the span that sent it, which is its parent if there is no other.

        What the block raises is recorded. The span is the current one inside of it.
        """
        sender = propagate.extract(_carrier(record.headers), context.Context())
        sent_in = trace.get_current_span(sender).get_span_context()
        has_parent = trace.get_current_span().get_span_context().is_valid
        attributes = self._attributes("process", record.topic, record.key) | {
            "messaging.destination.partition.id": str(record.partition),
            "messaging.kafka.offset": record.offset,
        }
        with self._tracer.start_as_current_span(
            f"process {record.topic}",
            context=None if has_parent else sender,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=[Link(sent_in)] if sent_in.is_valid else [],
            set_status_on_exception=False,
            record_exception=False,
        ) as span:
            try:
                yield span
            except Exception as error:
                _failed(span, error)
                raise

    def _attributes(self, operation: str, topic: str, key: Any) -> dict[str, Any]:
        found = self._client | {
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.destination.name": topic,
        }
        if key is not None:
            text = key.decode(errors="backslashreplace") if isinstance(key, bytes) else str(key)
            found["messaging.kafka.message.key"] = text[:_KEY_CHARS_MAX]
        return found


def _carrier(headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    return {key: value.decode(errors="replace") for key, value in headers if value is not None}


def _failed(span: Span, error: Exception) -> None:
    span.record_exception(error)
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR, str(error)))
