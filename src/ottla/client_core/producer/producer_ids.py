"""`ProducerIds`: gets a producer id for an idempotent producer that has no transactions (InitProducerId, from any broker)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ottla.client_core.backoff import Backoff
from ottla.client_core.machine import ANY_NODE, Request
from ottla.client_core.producer.idempotence import Idempotence
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import error_meaning
from ottla.wire.base import UnsupportedVersion
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

INIT_PRODUCER_ID_VERSION_MAX = 5
"""Used for everything but two-phase commit, which needs a version that Kafka 4.3 has not released."""
TWO_PHASE_VERSION = 6
_NO_TIMEOUT_MS = 0x7FFFFFFF


class BackoffSettings(Protocol):
    """The settings of retries."""

    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


def two_phase_request(message: InitProducerIdRequest, node: int, context: Any = None) -> Request:
    """A request of two-phase commit (KIP-939). A broker that does not serve it gets nothing: the request fails."""

    def adapted(version: int) -> InitProducerIdRequest:
        if version < TWO_PHASE_VERSION:
            raise UnsupportedVersion(
                "InitProducerId",
                f"two-phase commit needs version {TWO_PHASE_VERSION}, and the transaction coordinator of "
                f"{message.transactional_id} serves it up to {version} only. Brokers of Ottla serve it with "
                "transaction.two.phase.commit.enable=true, Apache Kafka 4.3 does not. Leave two-phase commit out, or change "
                "the brokers",
            )
        return message

    return Request(message, node, context=context, adapt=adapted)


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
