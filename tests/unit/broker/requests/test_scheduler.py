"""The scheduler: slices by the clock, turns of connections, off-loop calls, reserved memory."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from ottla.broker.requests import memory
from ottla.broker.requests.context import ConnectionInfo, Handled, Pending, PendingTask, RequestContext, future_of
from ottla.broker.requests.scheduler import (
    FIRST_SLICE_S,
    FIRST_SLICES_MAX,
    SLICE_S,
    SMALL_CALL_BYTES,
    WATCH_S,
    BackgroundPauses,
    Pauses,
    RoundRobin,
    Scheduler,
    SlicedWork,
    in_slices,
    off_loop,
)
from ottla.env import Await, OffLoop, Reserve, Steps
from ottla.errors import KafkaError
from ottla.sim.loop import VirtualLoop
from ottla.wire.messages.metadata import MetadataResponse

T = TypeVar("T")
VERSION = 9


def virtual(work: Coroutine[Any, Any, None]) -> None:
    VirtualLoop().run(work)


def spend(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.spend(seconds)


def context_of(scheduler: Scheduler, connection: int = 1) -> RequestContext:
    services: Any = SimpleNamespace(scheduler=scheduler)
    return RequestContext(services, ConnectionInfo(connection, "PLAINTEXT", ("peer", 1)), 3, VERSION, 5, "client", 0.0)


class LateWorkers:
    """Workers whose calls run when a test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    async def run(self, call: Callable[[], T], /) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.begun.append((call, future))
        return await future

    def end_first(self) -> None:
        call, future = self.begun.pop(0)
        try:
            future.set_result(call())
        except Exception as failure:
            future.set_exception(failure)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_owners_take_turns_in_a_round_robin() -> None:
    queue: RoundRobin[str] = RoundRobin()
    for owner, item in ((1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (3, "c2")):
        queue.put(owner, item)
    assert queue.first == "a1"
    taken = []
    while queue:
        taken.append(queue.take())
    assert taken == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_work_that_fits_into_the_first_slice_is_answered_at_once() -> None:
    async def scenario() -> None:
        response = MetadataResponse()

        def steps() -> Steps[Handled]:
            for _ in range(100):
                yield None
            return response

        assert in_slices(context_of(Scheduler()), steps()) is response

    virtual(scenario())


def test_failure_in_the_first_slice_is_raised() -> None:
    async def scenario() -> None:
        def steps() -> Steps[Handled]:
            yield None
            raise KafkaError(3, "no")

        with pytest.raises(KafkaError):
            in_slices(context_of(Scheduler()), steps())

    virtual(scenario())


def test_a_slice_ends_by_the_clock_and_connections_take_turns() -> None:
    async def scenario() -> None:
        scheduler, done = Scheduler(), []

        def steps(name: str) -> Steps[Handled]:
            for _ in range(12):
                done.append(name)
                spend(SLICE_S / 4 + 1e-6)
                yield None
            return MetadataResponse(cluster_id=name)

        works = [in_slices(context_of(scheduler, number), steps(name)) for number, name in enumerate("abc")]
        assert done == ["a", "b", "c"], "the first slice is shorter than one of these steps"
        answers = [await future_of(work) for work in works]
        assert [answer.cluster_id for answer in answers] == ["a", "b", "c"]
        runs = "".join(done[3:])
        assert runs.startswith("aaaabbbbccccaaaa")

    virtual(scenario())


def test_one_slice_in_each_turn_of_the_loop() -> None:
    async def scenario() -> None:
        scheduler, slices = Scheduler(), []

        def steps() -> Steps[Handled]:
            for _ in range(5):
                slices.append(None)
                spend(SLICE_S)
                yield None
            return None

        works = [in_slices(context_of(scheduler, number), steps()) for number in range(5)]
        assert all(isinstance(work, SlicedWork) for work in works)
        while len(slices) < 25:
            before = len(slices)
            await asyncio.sleep(0)
            assert len(slices) - before <= 1

    virtual(scenario())


def test_response_of_more_than_one_slice_may_be_large() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()

        def steps(is_long: bool) -> Steps[Handled]:
            spend(FIRST_SLICE_S * is_long)
            yield None
            return MetadataResponse(cluster_id="c")

        assert isinstance(in_slices(context_of(scheduler), steps(False)), MetadataResponse)
        work = in_slices(context_of(scheduler), steps(True))
        assert isinstance(work, SlicedWork)
        assert work.may_be_large
        assert (await future_of(work)).cluster_id == "c"

    virtual(scenario())


def test_pure_call_makes_a_response_off_the_loop() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        scheduler.workers = workers = LateWorkers()
        work = off_loop(context_of(scheduler), lambda: MetadataResponse(cluster_id="c"))
        assert isinstance(work, SlicedWork)
        await turns()
        workers.end_first()
        assert (await future_of(work)).cluster_id == "c"

    virtual(scenario())


def test_off_loop_calls_return_and_raise_into_the_work() -> None:
    async def scenario() -> None:
        seen = []

        def steps() -> Steps[Handled]:
            seen.append((yield OffLoop(lambda: 7, 1)))
            try:
                yield OffLoop(lambda: 1 // 0, 1)
            except ZeroDivisionError:
                seen.append("caught")
            return None

        work = in_slices(context_of(Scheduler()), steps())
        assert isinstance(work, SlicedWork)
        assert work.holds_back
        assert await future_of(work) is None
        assert not work.holds_back
        assert seen == [7, "caught"]

    virtual(scenario())


def test_large_calls_run_one_at_a_time_and_small_ones_beside_them() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        scheduler.workers = workers = LateWorkers()

        def steps(memory_bytes: int) -> Steps[Handled]:
            yield OffLoop(lambda: None, memory_bytes)
            return None

        large = [in_slices(context_of(scheduler, number), steps(SMALL_CALL_BYTES + 1)) for number in range(3)]
        small = in_slices(context_of(scheduler, 9), steps(SMALL_CALL_BYTES))
        await turns()
        assert len(workers.begun) == 2
        del workers.begun[0]  # it takes for ever
        workers.end_first()
        assert isinstance(small, Pending)
        await future_of(small)
        assert not any(isinstance(work, Pending) and work.is_done for work in large)

    virtual(scenario())


def test_abandoned_work_is_closed_and_its_waiting_calls_are_not_run() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        scheduler.workers = workers = LateWorkers()
        closed = []

        def steps(name: str) -> Steps[Handled]:
            try:
                yield OffLoop(lambda: name, 1)
            finally:
                closed.append(name)
            return None

        works = [in_slices(context_of(scheduler, number), steps(name)) for number, name in enumerate("abc")]
        await turns()
        for work in works[:2]:
            assert isinstance(work, SlicedWork)
            work.abandon()
        assert closed == ["a", "b"]
        workers.end_first()
        await turns()
        assert [call() for call, _ in workers.begun] == ["c"]

    virtual(scenario())


def test_memory_is_reserved_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARE_BYTES", 100)

    async def scenario() -> None:
        scheduler = Scheduler()
        scheduler.workers = workers = LateWorkers()
        begun = []

        def steps(name: str, memory_bytes: int) -> Steps[Handled]:
            yield Reserve(memory_bytes)
            begun.append(name)
            yield OffLoop(lambda: None, 1)
            return None

        wanted = {"a": 60, "b": 60, "c": 1, "d": 1000}
        works = [in_slices(context_of(scheduler, number), steps(*each)) for number, each in enumerate(wanted.items())]
        assert begun == ["a"], "c waits behind b: else a large one could wait for ever"
        await turns()
        workers.end_first()
        await turns()
        assert begun == ["a", "b", "c"]
        for work in works[1:3]:
            assert isinstance(work, SlicedWork)
            work.abandon()
        await turns()
        assert begun == ["a", "b", "c", "d"], "more than there is gets all there is"

    virtual(scenario())


def test_abandoned_work_that_waits_for_memory_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARE_BYTES", 100)

    async def scenario() -> None:
        scheduler = Scheduler()
        scheduler.workers = LateWorkers()
        begun = []

        def steps(name: str, memory_bytes: int) -> Steps[Handled]:
            yield Reserve(memory_bytes)
            begun.append(name)
            yield OffLoop(lambda: None, 1)
            return None

        wanted = {"a": 60, "b": 60, "c": 1}
        _, large, _ = [in_slices(context_of(scheduler, number), steps(*each)) for number, each in enumerate(wanted.items())]
        await turns()
        assert begun == ["a"]
        assert isinstance(large, SlicedWork)
        large.abandon()
        await turns()
        assert begun == ["a", "c"]

    virtual(scenario())


def test_memory_of_an_abandoned_request_is_kept_until_its_task_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARE_BYTES", 100)

    async def scenario() -> None:
        scheduler, may_end, begun = Scheduler(), asyncio.Event(), []

        async def respond() -> None:
            await may_end.wait()

        def steps(name: str) -> Steps[Handled]:
            yield Reserve(60, is_for_request=True)
            begun.append(name)
            spend(FIRST_SLICE_S)
            yield None
            return PendingTask(respond())

        works = [in_slices(context_of(scheduler, number), steps(name)) for number, name in enumerate("abc")]
        await turns(20)
        assert begun == ["a", "b"], "one waits in the memory for that, the other holds up the third"
        assert isinstance(works[0], SlicedWork)
        assert works[0].ended_with is not None
        works[0].abandon()
        await turns(20)
        assert begun == ["a", "b"]
        may_end.set()
        await turns(20)
        assert begun == ["a", "b", "c"]

    virtual(scenario())


def test_follower_does_not_wait_for_the_memory_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARE_BYTES", 100)

    async def scenario() -> None:
        scheduler, begun = Scheduler(), []
        scheduler.workers = LateWorkers()

        def steps(name: str, is_of_follower: bool) -> Steps[Handled]:
            yield Reserve(memory.SMALL_REQUEST_BYTES + 1, is_for_request=True, is_of_follower=is_of_follower)
            begun.append(name)
            yield OffLoop(lambda: None, 1)
            return None

        for number, (name, is_of_follower) in enumerate([("a", False), ("b", False), ("f", True)]):
            in_slices(context_of(scheduler, number), steps(name, is_of_follower))
        await turns()
        assert begun == ["a", "f"]

    virtual(scenario())


def test_response_to_wait_for_is_passed_on() -> None:
    async def scenario() -> None:
        scheduler, inner = Scheduler(), Pending()

        def steps(is_long: bool) -> Steps[Handled]:
            spend(FIRST_SLICE_S * is_long)
            yield None
            return inner

        assert in_slices(context_of(scheduler), steps(False)) is inner
        work = in_slices(context_of(scheduler), steps(True))
        assert isinstance(work, SlicedWork)
        await turns()
        assert not work.holds_back
        inner.complete(MetadataResponse(cluster_id="late"))
        assert (await future_of(work)).cluster_id == "late"

    virtual(scenario())


def test_coroutines_pause_when_their_slice_is_used_up() -> None:
    async def scenario() -> None:
        scheduler, done = Scheduler(), []

        async def work(name: str, connection: int) -> None:
            pauses = Pauses(context_of(scheduler, connection))
            for _ in range(8):
                done.append(name)
                spend(SLICE_S / 2 + 1e-6)
                await pauses.here()

        await asyncio.gather(work("a", 1), work("b", 2))
        assert "".join(done) == "abaabbaabbaabbab"

    virtual(scenario())


def test_coroutine_awaits_a_call_off_the_loop() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        scheduler.workers = workers = LateWorkers()
        pauses = Pauses(context_of(scheduler))

        def fail() -> None:
            raise KafkaError(7, "no")

        first, second, third = (asyncio.ensure_future(pauses.off_loop(each)) for each in (lambda: 5, fail, fail))
        await turns()
        assert len(workers.begun) == 1, "one call at a time"
        workers.end_first()
        assert await first == 5
        third.cancel()
        await turns()
        workers.end_first()
        with pytest.raises(KafkaError):
            await second
        await turns()
        assert not workers.begun, "nobody waits for the third"

    virtual(scenario())


def test_task_of_the_node_lets_the_loop_turn_after_each_slice() -> None:
    async def scenario() -> None:
        seen: list[str] = []

        async def work() -> None:
            pauses = BackgroundPauses()
            for number in range(4):
                seen.append(f"work {number}")
                spend(SLICE_S / 2)
                await pauses.here()

        task = asyncio.ensure_future(work())
        while not task.done():
            await asyncio.sleep(0)
            seen.append("other")
        assert seen[:6] == ["work 0", "work 1", "other", "work 2", "work 3", "other"]

    virtual(scenario())


def test_work_within_work_is_gone_once_it_has_ended() -> None:
    """The inner work knows the outer one, which keeps it as its end."""

    class Kept(SlicedWork):
        __slots__ = ("__weakref__",)

    def inner_steps() -> Steps[Handled]:
        yield None
        return MetadataResponse()

    def outer_steps(inner: Kept) -> Steps[Handled]:
        yield None
        return inner

    async def scenario() -> None:
        scheduler = Scheduler()
        inner = Kept(scheduler, context_of(scheduler), inner_steps())
        inner.hold()
        outer = SlicedWork(scheduler, context_of(scheduler), outer_steps(inner))
        outer.hold()
        outer.run(scheduler.now_s() + 60)
        inner.run(scheduler.now_s() + 60)
        assert outer.is_done
        gone = weakref.ref(inner)
        gc.disable()
        try:
            del outer, inner
            assert gone() is None
        finally:
            gc.enable()

    virtual(scenario())


def test_work_that_awaits_another_task_is_sent_its_result_and_holds_back_its_connection() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        awaited: list[asyncio.Future[Any]] = [asyncio.get_running_loop().create_future() for _ in range(3)]
        found: list[object] = []

        def steps() -> Steps[Handled]:
            found.append((yield Await(lambda: awaited[0])))
            try:
                yield Await(lambda: awaited[1])
            except ValueError as failure:
                found.append(str(failure))
            yield Await(lambda: awaited[2])
            return MetadataResponse()

        work: Any = in_slices(context_of(scheduler), steps())
        assert work.holds_back
        assert found == []
        awaited[0].set_result(7)
        awaited[1].set_exception(ValueError("away"))
        await turns()
        assert found == [7, "away"]
        awaited[2].cancel()
        await turns()
        assert work.is_done
        assert not work.holds_back
        assert "what the request waited for has ended" in str(work.outcome[1])

    virtual(scenario())


def test_first_slices_of_many_connections_do_not_add_up() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        loop = asyncio.get_running_loop()

        def steps() -> Steps[Handled]:
            for _ in range(3):
                spend(FIRST_SLICE_S)
                yield None
            return MetadataResponse()

        begun_s = loop.time()
        works: list[Any] = [in_slices(context_of(scheduler, number), steps()) for number in range(200)]
        assert loop.time() - begun_s < (FIRST_SLICES_MAX + 1) * FIRST_SLICE_S
        assert all([await future_of(work) for work in works])
        begun_s = loop.time()
        in_slices(context_of(scheduler), steps())
        assert loop.time() > begun_s, "in a later turn there are first slices again"

    virtual(scenario())


def test_large_call_is_watched_and_not_made_for_a_client_that_has_gone() -> None:
    async def scenario() -> None:
        scheduler, workers = Scheduler(), LateWorkers()
        scheduler.workers = workers
        looked: list[int] = []

        def work(connection: int, size_bytes: int) -> Any:
            def steps() -> Steps[Handled]:
                yield OffLoop(lambda: None, size_bytes)
                return MetadataResponse()

            context = context_of(scheduler, connection)
            found: Any = in_slices(context, steps())

            def end_if_gone() -> None:
                looked.append(connection)
                if connection == 2:
                    found.abandon()

            context.connection.end_if_gone = end_if_gone
            return found

        first, second, third = work(1, SMALL_CALL_BYTES + 1), work(2, SMALL_CALL_BYTES + 1), work(3, SMALL_CALL_BYTES)
        await asyncio.sleep(3.5 * WATCH_S)
        assert looked == [1] * len(looked)
        assert len(looked) >= 3, "the small call is not watched"
        workers.end_first()
        workers.end_first()
        await turns()
        assert first.is_done
        assert third.is_done
        assert second.is_done
        assert looked[-1] == 2
        assert not workers.begun, "nobody waits for the second call"

    virtual(scenario())
