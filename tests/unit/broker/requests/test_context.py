"""`Pending`: a response that is completed later."""

import asyncio
import logging
import weakref

import pytest

from ottla.broker.requests.context import Pending, future_of
from ottla.broker.requests.fault_log import LINES_IN_ALL, LINES_PER_HOST, WINDOW_S, FaultLog
from ottla.broker.requests.interception import InterceptedRequest, Interception
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.fetch import FetchResponse
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


class Fetching(Pending):
    """A fetch that waits until it is to be answered now."""

    def answer_now(self) -> None:
        self.complete(FetchResponse())


def test_a_request_that_waits_is_answered_when_the_node_stops() -> None:
    async def scenario() -> None:
        request = InterceptedRequest(Interception(rewrite=lambda response: response), Fetching)
        assert not request.is_done
        request.answer_now()
        assert isinstance(request.outcome[0], FetchResponse)

    asyncio.run(scenario())


def test_a_request_that_is_delayed_is_not_handled_sooner() -> None:
    async def scenario() -> None:
        request = InterceptedRequest(Interception(delay_s=60), Fetching)
        request.answer_now()
        assert not request.is_done
        request.abandon()

    asyncio.run(scenario())


def test_a_flood_is_cut_short_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 100.0
    log = FaultLog(lambda: now_s, logging.getLogger("test"))
    for number in range(1000):
        log.report(logging.WARNING, "hostile", "fault %d", number)
    assert len(caplog.records) == LINES_PER_HOST
    log.report(logging.ERROR, "other", "a real problem")
    assert caplog.records[-1].getMessage() == "a real problem"
    caplog.clear()
    now_s += WINDOW_S
    log.report(logging.INFO, "other", "next")
    assert "990 more" in caplog.records[0].getMessage()


def test_many_hosts_together_cannot_flood_it_either(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog(lambda: 5.0, logging.getLogger("test"))
    for number in range(1000):
        log.report(logging.WARNING, f"host-{number}", "fault")
    assert len(caplog.records) == LINES_IN_ALL


def bug(kind: type[Exception]) -> Exception:
    try:
        raise kind("why")
    except Exception as error:
        return error


def test_faults_of_peers_do_not_hide_bugs(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog(lambda: 5.0, logging.getLogger("test"))
    for number in range(1000):
        log.report(logging.WARNING, f"host-{number}", "fault")
    caplog.clear()
    for kind in (ValueError, KeyError):
        for _ in range(100):
            log.report_bug(logging.ERROR, bug(kind), "a bug: %s", kind.__name__)
    assert [record.getMessage() for record in caplog.records] == ["a bug: ValueError"] * 3 + ["a bug: KeyError"] * 3
    assert all(record.exc_info is not None for record in caplog.records)
