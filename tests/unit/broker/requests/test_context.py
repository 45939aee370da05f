"""`Pending`: a response that is completed later."""

import asyncio
import weakref

import pytest

from ottla.broker.requests.context import Pending, future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatResponse


def test_abandoned_pending_keeps_nothing_of_the_request() -> None:
    class Parked:
        def deliver(self, response: object, failure: BaseException | None) -> None:
            raise AssertionError("an abandoned request was answered")

    parked, pending = Parked(), Pending()
    pending.deliver_to(parked.deliver)
    gone = weakref.ref(parked)
    pending.abandon()
    del parked
    assert gone() is None
    pending.complete(None)


def test_completed_pending_is_freed_without_the_garbage_collector() -> None:
    class Parked:
        def __init__(self, pending: Pending) -> None:
            self.pending = pending
            self.answers: list[object] = []
            pending.deliver_to(self.deliver)

        def deliver(self, response: object, failure: BaseException | None) -> None:
            self.answers.append(response)

    for is_early in (False, True):
        pending = Pending()
        if is_early:
            pending.complete(None)
        parked = Parked(pending)
        pending.complete(None)
        pending.complete(None)
        assert parked.answers == [None]
        gone = weakref.ref(parked)
        del parked, pending
        assert gone() is None


def test_a_future_gets_what_a_handler_answers_now_or_later() -> None:
    async def run() -> None:
        response = HeartbeatResponse()
        assert await future_of(response) is response
        assert await future_of(None) is None
        pending = Pending()
        answered = future_of(pending)
        assert not answered.done()
        pending.complete(response)
        assert await answered is response

    asyncio.run(run())


def test_a_future_fails_as_the_handler_and_may_be_cancelled() -> None:
    async def run() -> None:
        refused, cancelled = Pending(), Pending()
        failing = future_of(refused)
        refused.fail(KafkaError(ErrorCode.NOT_COORDINATOR, "elsewhere"))
        with pytest.raises(KafkaError, match="elsewhere"):
            await failing
        future_of(cancelled).cancel()
        cancelled.complete(None)

    asyncio.run(run())
