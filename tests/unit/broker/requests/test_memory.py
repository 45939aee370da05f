"""Large requests that only wait hold up no others: their memory moves, and those that have waited for long are given up."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.held_partitions import virtual

from ottla.broker.requests import memory
from ottla.broker.requests.context import ConnectionInfo, Handled, PendingTask, RequestContext
from ottla.broker.requests.memory import BURST_BYTES, GRACE_S, QUIET_S, FreedMemory
from ottla.broker.requests.scheduler import FIRST_SLICE_S, Scheduler, SlicedWork, in_slices
from ottla.env import InlineWorkers, Reserve, Steps
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.sim.loop import VirtualLoop


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARE_BYTES", 100)


class Requests:
    """Requests that take 60 of 100 bytes and then wait until they are let go."""

    def __init__(self, may_give_up: bool = True) -> None:
        self.scheduler = Scheduler()
        self.begun: list[int] = []
        self.cancelled: list[int] = []
        self.may_end = asyncio.Event()
        self.works: list[SlicedWork] = []
        self._may_give_up = may_give_up

    def ask(self, is_nested: bool = False) -> None:
        number = len(self.works)
        services: Any = SimpleNamespace(scheduler=self.scheduler)
        context = RequestContext(services, ConnectionInfo(number, "PLAINTEXT", ("peer", 1)), 3, 9, 5, "client", 0.0)
        work = SlicedWork(self.scheduler, context, self._steps(number, context, is_nested))
        work.hold()
        self.works.append(work)
        work.deliver_to(lambda *_: work.give_back())
        work.run(0.0)

    def _steps(self, number: int, context: RequestContext, is_nested: bool) -> Steps[Handled]:
        yield Reserve(60, is_for_request=True)
        self.begun.append(number)
        if is_nested:
            return in_slices(context, self._inner(number))
        return PendingTask(self._wait(number), self._may_give_up)

    def _inner(self, number: int) -> Steps[Handled]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.spend(FIRST_SLICE_S)
        yield None
        return PendingTask(self._wait(number), self._may_give_up)

    async def _wait(self, number: int) -> None:
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise


@pytest.mark.parametrize("is_nested", [False, True])
def test_request_that_waits_holds_up_no_other(is_nested: bool) -> None:
    async def scenario() -> None:
        requests = Requests()
        requests.ask(is_nested)
        requests.ask(is_nested)
        await asyncio.sleep(0.1)
        assert requests.begun == [0, 1], "the memory of the first has moved"
        requests.may_end.set()
        await asyncio.sleep(0.1)
        for _ in range(2):
            requests.ask(is_nested)
        await asyncio.sleep(0.1)
        assert requests.begun == [0, 1, 2, 3], "all of it was given back"

    virtual(scenario())


@pytest.mark.parametrize("is_nested", [False, True])
def test_oldest_that_waits_is_given_up_when_there_is_no_room(is_nested: bool) -> None:
    async def scenario() -> None:
        requests = Requests()
        requests.ask(is_nested)
        await asyncio.sleep(2)
        for _ in range(2):
            requests.ask(is_nested)
        await asyncio.sleep(GRACE_S - 2.5)
        assert (requests.begun, requests.cancelled) == ([0, 1], [])
        await asyncio.sleep(1)
        assert (requests.begun, requests.cancelled) == ([0, 1, 2], [0])
        _, failure = requests.works[0].outcome
        assert isinstance(failure, KafkaError)
        assert failure.code == ErrorCode.REQUEST_TIMED_OUT
        assert not requests.works[1].is_done

    virtual(scenario())


def test_nobody_is_given_up_while_there_is_room() -> None:
    async def scenario() -> None:
        requests = Requests()
        requests.ask()
        await asyncio.sleep(100 * GRACE_S)
        assert not requests.works[0].is_done

    virtual(scenario())


def test_abandoned_request_is_given_up_as_well() -> None:
    async def scenario() -> None:
        requests = Requests()
        for _ in range(3):
            requests.ask()
        await asyncio.sleep(0.1)
        requests.works[0].abandon()
        await asyncio.sleep(GRACE_S)
        assert (requests.begun, requests.cancelled[0]) == ([0, 1, 2], 0)

    virtual(scenario())


def test_work_that_must_not_be_cancelled_is_waited_for() -> None:
    async def scenario() -> None:
        requests = Requests(may_give_up=False)
        for _ in range(3):
            requests.ask()
        await asyncio.sleep(3 * GRACE_S)
        assert (requests.begun, requests.cancelled) == ([0, 1], [])
        requests.may_end.set()
        await asyncio.sleep(0.1)
        assert requests.begun == [0, 1, 2]

    virtual(scenario())


def test_memory_goes_back_to_the_system_after_a_burst_once_it_is_quiet() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        returned_s: list[float] = []
        freed = FreedMemory(InlineWorkers(), lambda: returned_s.append(loop.time()))
        freed.note(BURST_BYTES // 2)
        await asyncio.sleep(10 * QUIET_S)
        assert not returned_s, "that is no burst"
        for _ in range(10):  # it goes on
            freed.note(BURST_BYTES)
            await asyncio.sleep(QUIET_S / 2)
        assert not returned_s
        await asyncio.sleep(3 * QUIET_S)
        assert len(returned_s) == 1
        await asyncio.sleep(100 * QUIET_S)
        assert len(returned_s) == 1, "an idle node does nothing"
        freed.note(BURST_BYTES)
        freed.close()
        await asyncio.sleep(3 * QUIET_S)
        assert len(returned_s) == 1

    virtual(scenario())
