"""`TransactionKeep`: takes over a transaction that another producer has flushed and left open, so that it never times out.

A machine (`machine.py`). It asks the coordinator to keep the transaction (InitProducerId v6 with KeepPreparedTxn and Enable2Pc,
KIP-939). The producer that wrote it is fenced, and the transaction gets a new identity, with which it can only be ended. The
request names the old identity: a later transaction of the same id is never taken, and a repeated request gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client_core.backoff import Backoff
from ottla.client_core.coordinators import BackoffSettings, CoordinatorFinder, CoordinatorKind
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.finishing import TransactionIdentity
from ottla.client_core.producer.pending import Pending
from ottla.client_core.producer.producer_ids import two_phase_request
from ottla.client_core.producer.transaction_errors import Verdict, verdict_of
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.wire.apis import ApiKey
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

_NOT_OURS = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
_NO_TIMEOUT_MS = 0x7FFFFFFF


class TransactionKeep:
    """Takes over one transaction. `pending` is done when `result` is known, or with an error."""

    def __init__(
        self,
        identity: TransactionIdentity,
        settings: BackoffSettings,
        metadata: Metadata,
        random_below: Callable[[int], int],
    ) -> None:
        self.result: TransactionIdentity | None = None
        """What ends the transaction from now on. None: it is not open any more, or belongs to another producer."""
        self.pending = Pending(f"the coordinator to keep {identity.transactional_id}'s transaction open")
        self.coordinator = CoordinatorFinder(
            metadata, CoordinatorKind.TRANSACTION, identity.transactional_id, settings, random_below
        )
        self.coordinator.want()
        self._identity = identity
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._not_before_ms = 0
        self._in_flight: Request | None = None

    def step(self, now_ms: int) -> list[Request]:
        requests = self.coordinator.step(now_ms)
        if self.coordinator.error is not None and not self.pending.is_done:
            self.pending.finish(self.coordinator.error)
        if self._in_flight is not None or self.pending.is_done or now_ms < self._not_before_ms:
            return requests
        node = self.coordinator.connected(Channel.DATA)
        if node is None:
            return requests
        transactional_id, producer_id, epoch = self._identity
        message = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=_NO_TIMEOUT_MS,
            producer_id=producer_id,
            producer_epoch=epoch,
            enable2_pc=True,
            keep_prepared_txn=True,
        )
        self._in_flight = two_phase_request(message, node)
        return [*requests, self._in_flight]

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if request is not self._in_flight:
            self.coordinator.answered(request, response, version, now_ms)
            return
        self._in_flight = None
        code = response.error_code
        if code in _NOT_OURS:
            self.pending.finish()
        elif code:
            self._refused(
                exception_of(code, f"transactional id {self._identity.transactional_id}: {error_meaning(code)}"), now_ms
            )
        else:
            # The transaction's own producer id and epoch stay; without an open transaction there are none.
            if response.ongoing_txn_producer_id >= 0:
                name = self._identity.transactional_id
                self.result = TransactionIdentity(name, response.producer_id, response.producer_epoch)
            self.pending.finish()

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if request is not self._in_flight:
            self.coordinator.failed(request, error, now_ms)
            return
        self._in_flight = None
        self._refused(error, now_ms)

    def next_deadline_ms(self) -> int | None:
        found = self.coordinator.next_deadline_ms()
        if self.pending.is_done or self._in_flight is not None or not self.coordinator.is_ready:
            return found
        return self._not_before_ms if found is None else min(found, self._not_before_ms)

    def _refused(self, error: KafkaError, now_ms: int) -> None:
        verdict = verdict_of(error, ApiKey.INIT_PRODUCER_ID)
        if verdict is Verdict.RELOCATE:
            self.coordinator.lost(str(error))
            self.coordinator.want()
        elif verdict is not Verdict.RETRY:
            self.pending.finish(error)
        self._not_before_ms = now_ms + self._backoff.failed()
