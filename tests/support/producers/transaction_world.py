"""A transaction manager and a model of its coordinator, without a loop."""

from typing import Any

from tests.support.producers.settings import small_settings

from ottla.client_core.machine import Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.idempotence import Idempotence
from ottla.client_core.producer.transaction_requests import Pending
from ottla.client_core.producer.transactions import TransactionManager
from ottla.errors import (
    NetworkError,
    exception_of,
)
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

KEY = ("t", 0)


class ModelCoordinator:
    """Kafka's rules for one transactional id, of transaction version 1 or 2."""

    def __init__(self, *, raises_epochs: bool) -> None:
        self.raises_epochs = raises_epochs
        self.epoch = -1
        self.state = "Empty"
        self.ended: list[tuple[int, str]] = []
        """(number of the transaction, how it ended)."""
        self.opened = 0

    def execute(self, message: Any) -> Any:
        if isinstance(message, FindCoordinatorRequest):
            key = "tx" if message.key_type == 1 else "g"
            return FindCoordinatorResponse(coordinators=[Coordinator(key=key, node_id=1, host="h", port=1)])
        if isinstance(message, InitProducerIdRequest):
            if self.state == "Ongoing" and message.keep_prepared_txn:
                self.epoch += 1
                kept = {"ongoing_txn_producer_id": 7, "ongoing_txn_producer_epoch": self.epoch - 1}
                return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch, **kept)
            if self.state == "Ongoing":
                self._end("CompleteAbort")
            self.epoch += 1
            self.state = "Empty"
            return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)
        if isinstance(message, EndTxnRequest):
            return self._end_txn(message)
        code = 0
        epoch = (
            message.v3_and_below_producer_epoch if isinstance(message, AddPartitionsToTxnRequest) else message.producer_epoch
        )
        if epoch != self.epoch:
            code = ErrorCode.PRODUCER_FENCED
        else:
            self.open()
        if isinstance(message, AddOffsetsToTxnRequest):
            return AddOffsetsToTxnResponse(error_code=code)
        if isinstance(message, TxnOffsetCommitRequest):
            return TxnOffsetCommitResponse(
                topics=[TxnOffsetCommitResponseTopic(name="t", partitions=[TxnOffsetCommitResponsePartition(error_code=code)])]
            )
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name="t", results_by_partition=[AddPartitionsToTxnPartitionResult(partition_error_code=code)]
                )
            ]
        )

    def open(self) -> None:
        if self.state != "Ongoing":
            self.state = "Ongoing"
            self.opened += 1

    def _end_txn(self, message: EndTxnRequest) -> EndTxnResponse:
        wanted = "CompleteCommit" if message.committed else "CompleteAbort"
        is_again = self.raises_epochs and message.producer_epoch == self.epoch - 1
        if is_again and self.state == wanted:
            return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)
        if message.producer_epoch != self.epoch:
            return EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if self.state == "Ongoing":
            self._end(wanted)
        elif self.state != wanted:
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch) if self.raises_epochs else EndTxnResponse()

    def _end(self, how: str) -> None:
        self.ended.append((self.opened, how))
        self.state = how
        if self.raises_epochs:
            self.epoch += 1


def sent(request: Request) -> Any:
    is_two_phase = isinstance(request.message, InitProducerIdRequest)
    return request.message if request.adapt is None else request.adapt(6 if is_two_phase else 4)


class TransactionWorld:
    """A manager and its coordinator, without a loop."""

    def __init__(self, *, raises_epochs: bool, **given: Any) -> None:
        self.now_ms = 0
        made = small_settings(transactional_id="tx", retry_backoff_ms=10, **given)
        self.metadata = Metadata(made, lambda below: below // 2)
        self.metadata.learn_features(1, {"transaction.version": 2 if raises_epochs else 1})
        self.idempotence = Idempotence(is_transactional=True)
        self.manager = TransactionManager("tx", made, self.idempotence, self.metadata, lambda below: below // 2)
        self.coordinator = ModelCoordinator(raises_epochs=raises_epochs)
        self.in_flight: list[Request] = []

    def step(self) -> None:
        self.in_flight += self.manager.step(self.now_ms)
        ours = [request for request in self.in_flight if not isinstance(request.message, FindCoordinatorRequest)]
        assert len(ours) <= 1

    def answer(self, fate: str = "answer") -> None:
        """The oldest request meets its fate."""
        if not self.in_flight:
            return
        request = self.in_flight.pop(0)
        if fate == "lost":
            self.manager.failed(request, NetworkError("gone"), self.now_ms)
            return
        if fate == "busy" and not isinstance(request.message, FindCoordinatorRequest):
            self.manager.failed(request, exception_of(ErrorCode.CONCURRENT_TRANSACTIONS), self.now_ms)
            return
        response = self.coordinator.execute(sent(request))
        if fate == "unanswered":
            self.manager.failed(request, NetworkError("gone"), self.now_ms)
        else:
            self.manager.answered(request, response, 4, self.now_ms)

    def run(self, pending: Pending, fates: list[str] | None = None) -> None:
        """Until the operation is done: with these fates first, then all is well."""
        left = list(fates or [])
        for _ in range(200):
            self.step()
            self.answer(left.pop(0) if left else "answer")
            if pending.is_done:
                return
            self.now_ms += 50
        raise AssertionError(f"{pending.what}: not done; the manager is {self.manager.state}")

    def send(self) -> None:
        """A record is sent: under version 2 the broker adds its partition by itself."""
        for _ in range(50):
            if self.manager.may_send(KEY):
                if self.manager.is_implicit:
                    self.coordinator.open()
                return
            self.step()
            self.answer()
            self.now_ms += 50
        raise AssertionError("the partition was not added")
