"""`ProducerIds`: gets a producer id for an idempotent producer that has no transactions (InitProducerId, from any broker)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ottla.client_core.backoff import Backoff
from ottla.client_core.machine import ANY_NODE, Request
from ottla.client_core.producer.idempotence import Idempotence
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import error_meaning
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

INIT_PRODUCER_ID_VERSION_MAX = 5
"""Version 6 is for two-phase commit, which Kafka 4.3 has not released."""
_NO_TIMEOUT_MS = 0x7FFFFFFF


class BackoffSettings(Protocol):
    """The settings of retries."""

    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


class ProducerIds:
    """A machine that asks while the producer has no id. `error` is why it has stopped asking."""

    def __init__(self, settings: BackoffSettings, idempotence: Idempotence, random_below: Callable[[int], int]) -> None:
        self.error: KafkaError | None = None
        self._idempotence = idempotence
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._is_in_flight = False
        self._not_before_ms = 0

    @property
    def _is_due(self) -> bool:
        return not self._idempotence.has_id and not self._is_in_flight and self.error is None

    def step(self, now_ms: int) -> list[Request]:
        if not self._is_due or now_ms < self._not_before_ms:
            return []
        self._is_in_flight = True
        message = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        return [Request(message, ANY_NODE, version_max=INIT_PRODUCER_ID_VERSION_MAX)]

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if response.error_code:
            text = f"the brokers gave this producer no id: {error_meaning(response.error_code)}"
            self.failed(request, exception_of(response.error_code, text), now_ms)
            return
        self._is_in_flight = False
        self._backoff.succeeded()
        self._idempotence.take_id(response.producer_id, response.producer_epoch)
        self._idempotence.finish_bump()

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self._is_in_flight = False
        if error.is_retriable:
            self._not_before_ms = now_ms + self._backoff.failed()
        else:
            self.error = error

    def next_deadline_ms(self) -> int | None:
        return self._not_before_ms if self._is_due else None
