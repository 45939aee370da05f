"""Taking over a transaction that was left open: by its identity only, and with brokers that can."""

from typing import Any

import pytest
from tests.support.producers.settings import small_settings

from ottla.client_core.machine import Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.prepared_transactions import TransactionIdentity, TransactionKeep
from ottla.errors import NetworkError, TransactionalIdAuthorizationError
from ottla.errors.codes import ErrorCode
from ottla.wire.base import UnsupportedVersion
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

IDENTITY = TransactionIdentity("tx", 7, 3)
KEPT = InitProducerIdResponse(producer_id=7, producer_epoch=4, ongoing_txn_producer_id=7, ongoing_txn_producer_epoch=3)


class World:
    """A machine whose coordinator is known."""

    def __init__(self) -> None:
        self.now_ms = 0
        settings = small_settings()
        self.machine = TransactionKeep(IDENTITY, settings, Metadata(settings, lambda below: 0), lambda below: below // 2)

    def next(self) -> Request:
        for _ in range(20):
            for request in self.machine.step(self.now_ms):
                if isinstance(request.message, InitProducerIdRequest):
                    return request
                found = FindCoordinatorResponse(coordinators=[Coordinator(key="tx", node_id=1, host="h", port=1)])
                self.machine.answered(request, found, 4, self.now_ms)
            self.now_ms = max(self.now_ms, self.machine.next_deadline_ms() or 0)
        raise AssertionError("the machine asks for nothing")

    def answer(self, response: Any) -> None:
        self.machine.answered(self.next(), response, 6, self.now_ms)


def test_an_open_transaction_gets_a_new_identity() -> None:
    world = World()
    request = world.next()
    message = request.message
    assert isinstance(message, InitProducerIdRequest)
    assert (message.transactional_id, message.producer_id, message.producer_epoch) == IDENTITY
    assert message.enable2_pc
    assert message.keep_prepared_txn
    world.machine.answered(request, KEPT, 6, world.now_ms)
    assert world.machine.pending.is_done
    assert world.machine.result == TransactionIdentity("tx", 7, 4)
    assert world.machine.step(10_000) == []
    assert world.machine.next_deadline_ms() is None


@pytest.mark.parametrize(
    "response",
    [
        InitProducerIdResponse(producer_id=7, producer_epoch=5),
        InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED),
        InitProducerIdResponse(error_code=ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_is_not_open_any_more_is_not_kept(response: InitProducerIdResponse) -> None:
    world = World()
    world.answer(response)
    assert world.machine.pending.is_done
    assert world.machine.pending.error is None
    assert world.machine.result is None


def test_a_lost_answer_and_a_moved_coordinator_are_asked_again() -> None:
    world = World()
    world.machine.failed(world.next(), NetworkError("gone"), world.now_ms)
    world.answer(InitProducerIdResponse(error_code=ErrorCode.NOT_COORDINATOR))
    world.answer(InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS))
    world.answer(KEPT)
    assert world.machine.result == TransactionIdentity("tx", 7, 4)


def test_a_refusal_is_an_error() -> None:
    world = World()
    world.answer(InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    assert isinstance(world.machine.pending.error, TransactionalIdAuthorizationError)


def test_a_broker_without_the_version_is_sent_nothing() -> None:
    adapt = World().next().adapt
    assert adapt is not None
    assert isinstance(adapt(6), InitProducerIdRequest)
    with pytest.raises(UnsupportedVersion, match=r"needs version 6.*tx serves it up to 5 only.*two.phase.commit.enable=true"):
        adapt(5)
