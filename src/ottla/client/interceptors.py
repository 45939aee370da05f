"""Interceptors: what a user runs around every record that a client sends or hands out (Kafka's interceptor.classes).

An interceptor is an object with some of these methods:

    producer    on_send(record) -> record or None             before serializers, in the caller's thread; None: unchanged
                on_acknowledgement(metadata, error, headers)  stored, or failed; on the producer's thread or the event loop
    consumer    on_consume(records) -> records or None        after deserializers, before poll returns them
                on_commit(offsets)                            offsets were committed
    both        configure(settings)                           once, with {Kafka's name: value}
                close()                                       with the client

They are called in the order of the setting, each with what the one before returned. One that raises is logged and skipped: the
next one gets what the last one without a fault returned. All of this is as in Apache Kafka's clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ottla.client.consumer.record import ConsumerRecord
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.client_core.producer.batch import RecordMetadata
from ottla.client_core.serializers import own_object
from ottla.config.client import ClientSettings, load
from ottla.errors import ConfigError, KafkaError
from ottla.ids import TopicPartition

logger = logging.getLogger("ottla.client")

SETTING = "interceptor.classes"
_PRODUCER_METHODS = ("on_send", "on_acknowledgement")
_CONSUMER_METHODS = ("on_consume", "on_commit")

Headers = tuple[tuple[str, bytes | None], ...]


class ProducerRecord(NamedTuple):
    """A record as it was given to `send`. An interceptor returns another one: `record._replace(value=...)`."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = ()


class ProducerInterceptors:
    """The interceptors of one producer."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = interceptors
        self._on_send = _methods(interceptors, "on_send")
        self._on_acknowledgement = _methods(interceptors, "on_acknowledgement")

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """A record is about to be sent."""
        for call in self._on_send:
            try:
                found = call(record)
                if found is not None:
                    record = _checked(found)
            except Exception:
                logger.warning(
                    "interceptor %r raised in on_send for topic %s: it is skipped", call, record.topic, exc_info=True
                )
        return record

    def callback(self, record: ProducerRecord, on_delivery: Callable[..., Any] | None) -> Callable[..., Any]:
        """What to call when a record is stored or has failed: the interceptors, then `on_delivery`."""
        return partial(self._delivered, record, on_delivery)

    def _delivered(
        self,
        record: ProducerRecord,
        on_delivery: Callable[..., Any] | None,
        metadata: RecordMetadata | None,
        error: KafkaError | None,
    ) -> Any:
        self.acknowledged(record, metadata, error)
        return None if on_delivery is None else on_delivery(metadata, error)

    def acknowledged(self, record: ProducerRecord, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """A record is stored or has failed. Of one that failed, metadata has -1 for what is not known."""
        if metadata is None:
            metadata = RecordMetadata(record.topic, -1 if record.partition is None else record.partition, -1, -1)
        for call in self._on_acknowledgement:
            try:
                call(metadata, error, record.headers)
            except Exception:
                logger.warning("interceptor %r raised in on_acknowledgement: it is skipped", call, exc_info=True)

    def close(self) -> None:
        """The producer is closed."""
        _close(self._interceptors)


class ConsumerInterceptors:
    """The interceptors of one consumer."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = interceptors
        self._on_consume = _methods(interceptors, "on_consume")
        self._on_commit = _methods(interceptors, "on_commit")

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """Records are about to be handed out."""
        for call in self._on_consume:
            try:
                found = call(records)
                if found is not None:
                    records = list(found)
            except Exception:
                logger.warning("interceptor %r raised in on_consume: it is skipped", call, exc_info=True)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Offsets were committed."""
        for call in self._on_commit:
            try:
                call(dict(offsets))
            except Exception:
                logger.warning("interceptor %r raised in on_commit: it is skipped", call, exc_info=True)

    def close(self) -> None:
        """The consumer is closed."""
        _close(self._interceptors)


def producer_interceptors(settings: ClientSettings, given: Sequence[Any]) -> ProducerInterceptors | None:
    """The chain of a producer; None without interceptors."""
    return ProducerInterceptors(_made(settings, given, _PRODUCER_METHODS)) if given else None


def consumer_interceptors(settings: ClientSettings, given: Sequence[Any]) -> ConsumerInterceptors | None:
    """The chain of a consumer; None without interceptors."""
    return ConsumerInterceptors(_made(settings, given, _CONSUMER_METHODS)) if given else None


def _made(settings: ClientSettings, given: Sequence[Any], methods: tuple[str, ...]) -> list[Any]:
    made = []
    for each in given:
        found: Any = load(SETTING, each)
        if isinstance(found, type):
            found = own_object(found, next((name for name in methods if hasattr(found, name)), "configure"), SETTING)
        if not any(callable(getattr(found, name, None)) for name in (*methods, "configure")):
            raise ConfigError(
                f"{SETTING} has {each!r}, which has neither {' nor '.join(methods)}: give an object, a class or "
                "package.module:Name with one of these methods",
                setting=SETTING,
            )
        made.append(found)
    for each in made:
        if callable(getattr(each, "configure", None)):
            each.configure({name.replace("_", "."): getattr(settings, name) for name in settings.attributes})
    return made


def _methods(interceptors: Sequence[Any], name: str) -> list[Callable[..., Any]]:
    return [method for each in interceptors if callable(method := getattr(each, name, None))]


def _checked(record: Any) -> ProducerRecord:
    if not isinstance(record, ProducerRecord):
        raise TypeError(f"on_send returned {type(record).__name__}: it must return a ProducerRecord, or None")
    headers = record.headers.items() if isinstance(record.headers, Mapping) else record.headers
    return record._replace(headers=tuple((key, value) for key, value in headers))


def _close(interceptors: Sequence[Any]) -> None:
    for each in interceptors:
        close = getattr(each, "close", None)
        if callable(close):
            try:
                close()
            except Exception:
                logger.exception("interceptor %r raised in close", each)
