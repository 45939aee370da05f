"""`TransactionFinish`: commits or aborts a transaction that another producer, in another process, has flushed and left open.

A machine (`machine.py`). It asks the coordinator for the transaction's state (DescribeTransactions) before every EndTxn, so
that it knows whether an end was its own, and never repeats an EndTxn blindly: under transaction version 1 the epoch stays the
same, and a repeated one could end the producer's next transaction. The time at which a transaction began tells the two apart.

Under version 2 an end raises the epoch by one, and so does a timeout. So an abort that is found is a timeout for a caller that
wants to commit, and the end that it wants for a caller that wants to abort.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from ottla.client_core.coordinators import BackoffSettings, CoordinatorFinder, CoordinatorKind
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.idempotence import EPOCH_MAX, two_phase_request
from ottla.client_core.producer.transaction_requests import END_VERSION_MAX_BEFORE_TV2, Pending, Verdict, verdict_of
from ottla.env.backoff import Backoff
from ottla.errors import InvalidTxnStateError, KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest


class TransactionIdentity(NamedTuple):
    """What it takes to end a transaction from another process."""

    transactional_id: str
    producer_id: int
    epoch: int


class PreparedTransaction(NamedTuple):
    """What tells a prepared transaction from the others of its transactional id (KIP-939). Store it with the decision."""

    producer_id: int
    epoch: int


class Finish(Enum):
    """How a transaction ended that was left open."""

    DONE_NOW = "done now"
    """This call ended it."""
    DONE_BEFORE = "done before"
    """It had ended as asked already."""
    TIMED_OUT = "timed out"
    """The coordinator aborted it, because it was open for longer than transaction.timeout.ms, or someone else did."""
    FENCED = "fenced"
    """Another producer has taken the transactional id since. The transaction was aborted, unless it had ended before."""


class _Phase(Enum):
    LOOK = "look"
    END = "end"


class TransactionFinish:
    """Ends one transaction. `pending` is done when `result` is known, or with an error."""

    def __init__(
        self,
        identity: TransactionIdentity,
        is_commit: bool,
        settings: BackoffSettings,
        metadata: Metadata,
        random_below: Callable[[int], int],
    ) -> None:
        self.result: Finish | None = None
        self.pending = Pending(
            f"the coordinator to {'commit' if is_commit else 'abort'} {identity.transactional_id}'s transaction"
        )
        self.coordinator = CoordinatorFinder(
            metadata, CoordinatorKind.TRANSACTION, identity.transactional_id, settings, random_below
        )
        self.coordinator.want()
        self._identity = identity
        self._is_commit = is_commit
        self._metadata = metadata
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._not_before_ms = 0
        self._phase = _Phase.LOOK
        self._in_flight: Request | None = None
        self._began_ms: int | None = None
        self._is_asked = False
        """Whether an EndTxn was sent that may have been executed."""
        self._refusal: KafkaError | None = None

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        requests = self.coordinator.step(now_ms)
        if self.coordinator.error is not None and not self.pending.is_done:
            self.pending.finish(self.coordinator.error)
        if self._in_flight is not None or self.pending.is_done or now_ms < self._not_before_ms:
            return requests
        node = self.coordinator.connected(Channel.DATA)
        if node is None:
            return requests
        self._in_flight = self._request(node)
        return [*requests, self._in_flight]

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if request is not self._in_flight:
            self.coordinator.answered(request, response, version, now_ms)
            return
        self._in_flight = None
        if self._phase is _Phase.END:
            self._phase = _Phase.LOOK
            self._is_asked = True
            if response.error_code:
                self._refused(self._error(response.error_code), now_ms)
            else:
                self._finish(Finish.DONE_NOW)
            return
        found: TransactionState = response.transaction_states[0]
        if found.error_code:
            self._refused(self._error(found.error_code), now_ms, is_final=True)
        else:
            self._backoff.succeeded()
            self._looked(found, now_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if request is not self._in_flight:
            self.coordinator.failed(request, error, now_ms)
            return
        self._in_flight = None
        if self._phase is _Phase.END:
            self._is_asked = self._is_asked or not error.is_unsent
        self._phase = _Phase.LOOK
        self._refused(error, now_ms, is_final=not error.is_retriable)

    def next_deadline_ms(self) -> int | None:
        found = self.coordinator.next_deadline_ms()
        if self.pending.is_done or self._in_flight is not None or not self.coordinator.is_ready:
            return found
        return self._not_before_ms if found is None else min(found, self._not_before_ms)

    # Steps

    def _request(self, node: int) -> Request:
        transactional_id, producer_id, epoch = self._identity
        if self._phase is _Phase.LOOK:
            return Request(DescribeTransactionsRequest(transactional_ids=[transactional_id]), node)
        message = EndTxnRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=self._is_commit
        )
        return Request(message, node, version_max=None if self._raises_epochs else END_VERSION_MAX_BEFORE_TV2)

    @property
    def _raises_epochs(self) -> bool:
        return self._metadata.features.get("transaction.version", 0) >= 2

    def _looked(self, found: TransactionState, now_ms: int) -> None:
        """Decide by the state that the coordinator has."""
        _, producer_id, epoch = self._identity
        is_same = (found.producer_id, found.producer_epoch) == (producer_id, epoch)
        is_next = (found.producer_id, found.producer_epoch) == (producer_id, epoch + 1)
        if epoch >= EPOCH_MAX - 1 and found.producer_epoch == 0:
            is_next = True  # epochs are used up: the coordinator went on with a new id
        state = found.transaction_state
        if not is_same and not is_next:
            self._finish(Finish.FENCED)
        elif state == "Ongoing":
            self._found_open(found.transaction_start_time_ms, is_same)
        elif state.startswith("Prepare"):
            self._not_before_ms = now_ms + self._backoff.failed()  # markers are being written: look again
        elif state in ("CompleteCommit", "CompleteAbort"):
            self._found_ended(state == "CompleteCommit", is_next)
        else:
            self.pending.finish(
                InvalidTxnStateError(
                    f"transactional id {self._identity.transactional_id} has no open transaction: it is {state}"
                )
            )

    def _found_open(self, began_ms: int, is_same: bool) -> None:
        if not is_same:
            self._finish(Finish.FENCED)
        elif self._began_ms is not None and began_ms != self._began_ms:
            self._finish(Finish.DONE_NOW)  # what is open now is a later transaction
        elif self._refusal is not None:
            self.pending.finish(self._refusal)
        else:
            self._began_ms = began_ms
            self._phase = _Phase.END

    def _found_ended(self, was_commit: bool, is_next: bool) -> None:
        if was_commit and not self._is_commit:
            text = f"the transaction of {self._identity.transactional_id} was committed before: it cannot be aborted"
            self.pending.finish(InvalidTxnStateError(text))
        elif was_commit != self._is_commit or (is_next and not self._raises_epochs):
            self._finish(Finish.TIMED_OUT)
        else:
            self._finish(Finish.DONE_NOW if self._is_asked else Finish.DONE_BEFORE)

    def _refused(self, error: KafkaError, now_ms: int, *, is_final: bool = False) -> None:
        """Look again after an error, unless it stays."""
        self._not_before_ms = now_ms + self._backoff.failed()
        verdict = verdict_of(error, ApiKey.END_TXN)
        if verdict is Verdict.RELOCATE:
            self.coordinator.lost(str(error))
            self.coordinator.want()
        elif verdict is not Verdict.RETRY:
            if is_final or error.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                self.pending.finish(error)
            self._refusal = error

    def _error(self, code: int) -> KafkaError:
        return exception_of(code, f"transactional id {self._identity.transactional_id}: {error_meaning(code)}")

    def _finish(self, result: Finish) -> None:
        self.result = result
        self.pending.finish()


# `TransactionKeep`: takes over a transaction that another producer has flushed and left open, so that it never times out.
#
# A machine (`machine.py`). It asks the coordinator to keep the transaction (InitProducerId v6 with KeepPreparedTxn and
# Enable2Pc, KIP-939). The producer that wrote it is fenced, and the transaction gets a new identity, with which it can only
# be ended. The request names the old identity: a later transaction of the same id is never taken, and a repeated request gets
# the same answer.

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
