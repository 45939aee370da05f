"""Ending a transaction that was left open: what the coordinator says decides, and no later transaction is ended."""

from typing import Any

import pytest
from tests.support.producers.settings import small_settings

from ottla.client_core.machine import Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.prepared_transactions import Finish, TransactionFinish, TransactionIdentity
from ottla.errors import InvalidTxnStateError, NetworkError, TransactionalIdAuthorizationError, TransactionalIdNotFoundError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

IDENTITY = TransactionIdentity("tx", 7, 3)


class World:
    """A machine whose coordinator is known."""

    def __init__(self, *, is_commit: bool = True, version: int = 2) -> None:
        self.now_ms = 0
        settings = small_settings()
        metadata = Metadata(settings, lambda below: below // 2)
        metadata.learn_features(1, {"transaction.version": version})
        self.machine = TransactionFinish(IDENTITY, is_commit, settings, metadata, lambda below: below // 2)

    def next(self) -> Request:
        """The next request to the coordinator, which is found on the way if it must be."""
        for _ in range(20):
            for request in self.machine.step(self.now_ms):
                if isinstance(request.message, DescribeTransactionsRequest | EndTxnRequest):
                    return request
                found = FindCoordinatorResponse(coordinators=[Coordinator(key="tx", node_id=1, host="h", port=1)])
                self.machine.answered(request, found, 4, self.now_ms)
            self.now_ms = max(self.now_ms, self.machine.next_deadline_ms() or 0)
        raise AssertionError("the machine asks for nothing")

    def answer(self, request: Request, response: Any) -> None:
        self.machine.answered(request, response, 5, self.now_ms)

    def look(self, state: str, *, epoch: int = 3, producer_id: int = 7, began_ms: int = 50) -> None:
        """The coordinator is asked for the state, and answers with this one."""
        request = self.next()
        assert isinstance(request.message, DescribeTransactionsRequest)
        found = TransactionState(
            transaction_state=state, producer_id=producer_id, producer_epoch=epoch, transaction_start_time_ms=began_ms
        )
        self.answer(request, DescribeTransactionsResponse(transaction_states=[found]))

    def end(self) -> Request:
        request = self.next()
        assert isinstance(request.message, EndTxnRequest)
        assert (request.message.producer_id, request.message.producer_epoch) == (7, 3)
        return request


def test_an_open_transaction_is_ended() -> None:
    world = World()
    world.look("Ongoing")
    request = world.end()
    assert request.version_max is None
    world.answer(request, EndTxnResponse())
    assert world.machine.result is Finish.DONE_NOW
    assert world.machine.pending.is_done
    assert world.machine.step(10_000) == []


@pytest.mark.parametrize(
    ("is_commit", "version", "state", "epoch", "result"),
    [
        (True, 2, "CompleteCommit", 4, Finish.DONE_BEFORE),
        (False, 2, "CompleteAbort", 4, Finish.DONE_BEFORE),
        (True, 1, "CompleteCommit", 3, Finish.DONE_BEFORE),
        (False, 1, "CompleteAbort", 3, Finish.DONE_BEFORE),
        (True, 2, "CompleteAbort", 4, Finish.TIMED_OUT),
        (True, 1, "CompleteAbort", 4, Finish.TIMED_OUT),
        (False, 1, "CompleteAbort", 4, Finish.TIMED_OUT),
        (True, 2, "Empty", 5, Finish.FENCED),
        (True, 2, "Ongoing", 5, Finish.FENCED),
        (True, 2, "Ongoing", 4, Finish.FENCED),
    ],
)
def test_what_is_found_ended_is_told(is_commit: bool, version: int, state: str, epoch: int, result: Finish) -> None:
    world = World(is_commit=is_commit, version=version)
    world.look(state, epoch=epoch)
    assert world.machine.result is result


def test_a_transaction_that_is_being_ended_is_looked_at_again() -> None:
    world = World()
    world.look("PrepareCommit", epoch=4)
    assert not world.machine.pending.is_done
    world.look("CompleteCommit", epoch=4)
    assert world.machine.result is Finish.DONE_BEFORE


@pytest.mark.parametrize("version", [1, 2])
def test_an_end_without_an_answer_counts_as_ours(version: int) -> None:
    world = World(version=version)
    world.look("Ongoing")
    world.machine.failed(world.end(), NetworkError("gone"), world.now_ms)
    world.look("CompleteCommit", epoch=3 if version == 1 else 4)
    assert world.machine.result is Finish.DONE_NOW


def test_an_end_that_was_not_executed_is_repeated() -> None:
    world = World(version=1)
    world.look("Ongoing")
    world.machine.failed(world.end(), NetworkError("gone"), world.now_ms)
    world.look("Ongoing")
    request = world.end()
    assert request.version_max == 4
    world.answer(request, EndTxnResponse())
    assert world.machine.result is Finish.DONE_NOW


def test_a_later_transaction_of_the_same_epoch_is_not_ended() -> None:
    world = World(version=1)
    world.look("Ongoing", began_ms=50)
    world.machine.failed(world.end(), NetworkError("gone"), world.now_ms)
    world.look("Ongoing", began_ms=60)
    assert world.machine.result is Finish.DONE_NOW
    assert world.machine.step(1_000_000) == []


def test_a_refused_end_is_explained_by_the_state() -> None:
    world = World()
    world.look("Ongoing")
    world.answer(world.end(), EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED))
    world.look("CompleteAbort", epoch=4)
    assert world.machine.result is Finish.TIMED_OUT


def test_a_refusal_that_no_state_explains_is_raised() -> None:
    world = World()
    world.look("Ongoing")
    world.answer(world.end(), EndTxnResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    world.look("Ongoing")
    assert world.machine.pending.error is not None


@pytest.mark.parametrize(
    ("state", "epoch"),
    [("Empty", 3), ("CompleteCommit", 4)],
)
def test_what_cannot_be_aborted_is_an_error(state: str, epoch: int) -> None:
    world = World(is_commit=False)
    world.look(state, epoch=epoch)
    assert isinstance(world.machine.pending.error, InvalidTxnStateError)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, TransactionalIdNotFoundError),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TransactionalIdAuthorizationError),
    ],
)
def test_an_id_that_cannot_be_looked_at_is_an_error(code: ErrorCode, error: type[Exception]) -> None:
    world = World()
    answer = DescribeTransactionsResponse(transaction_states=[TransactionState(error_code=code)])
    world.answer(world.next(), answer)
    assert isinstance(world.machine.pending.error, error)
