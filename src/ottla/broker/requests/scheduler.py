"""The scheduler: expensive work of requests, in slices, so that no client holds the loop.

A handler writes such work as `Steps` (`env/work.py`) and returns `in_slices(context, steps)`. The first slice runs at once:
most work ends in it, and the handler returns a response as always. The rest waits. In each turn of the loop the scheduler
runs one slice of one connection's work, about `SLICE_S` long by the clock, and the connections take turns: twenty clients
with expensive requests cost the others no more than one does. A connection that has more requests at hand than fit into a slice
waits in the same scheduler (`net/connection.py`).

What releases the interpreter lock (codecs) runs in worker threads: one call with much memory at a time, and one small call.
That bounds the memory of all such calls together. Connections take turns here too. Work that makes a large response reserves
memory for it first.

Belongs to one event loop. The order of replies is not its business: each connection keeps that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ottla.broker.requests.context import Handled, Pending
from ottla.broker.requests.memory import RequestMemory, RoundRobin, Share
from ottla.env import Await, InlineWorkers, OffLoop, Steps, Workers
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.requests.context import RequestContext

SLICE_S = 0.010
FIRST_SLICE_S = 0.002
"""Shorter, because every connection may have one in the same turn of the loop."""

FIRST_SLICES_MAX = 10
"""So many first slices may be used up in one turn of the loop. Work that comes after them waits for its turn at once."""

SMALL_CALL_BYTES = 8 << 20
"""Off-loop calls with up to this much memory do not wait for larger ones."""

WATCH_S = 1.0
"""How often a large call looks whether its client is still there."""

T = TypeVar("T")


class Resumed(Protocol):
    """Work that waits for an off-loop call."""

    @property
    def is_done(self) -> bool:
        """Whether nothing waits for the call any more, so that it need not run."""
        ...

    def end_if_gone(self) -> None:
        """End the connection if its client has gone; then nothing waits any more."""
        ...

    def resume(self, value: Any, failure: BaseException | None) -> None:
        """The call has ended."""
        ...


class SlicedWork(Pending):
    """A request whose response is made in slices."""

    __slots__ = (
        "_context",
        "_failure_sent",
        "_is_at_work",
        "_outer",
        "_scheduler",
        "_steps",
        "_value_sent",
        "ended_with",
        "may_be_large",
        "reserved_bytes",
        "reserved_in",
    )

    def __init__(self, scheduler: Scheduler, context: RequestContext, steps: Steps[Handled]) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._context = context
        self._steps = steps
        self._value_sent: Any = None
        self._failure_sent: BaseException | None = None
        self.reserved_bytes = 0
        self.reserved_in: Share | None = None
        self._outer: SlicedWork | None = None
        """The work that has returned this one as its response, if one has. It has reserved the memory of the request."""
        self.ended_with: Pending | None = None
        """What the steps have returned, if that is a response to wait for."""
        self.may_be_large = False
        self._is_at_work = True

    @property
    def holds_back(self) -> bool:
        return self._is_at_work if self.ended_with is None else self.ended_with.holds_back

    def run(self, until_s: float) -> None:
        """Do what can be done until `until_s`."""
        steps, scheduler = self._steps, self._scheduler
        try:
            while not self.is_done:
                # No name here may refer to a failure: it would be kept by the frames that it passes.
                wanted = steps.send(self._take_value()) if self._failure_sent is None else steps.throw(self._take_failure())
                if isinstance(wanted, OffLoop):
                    scheduler.run_off_loop(self._context.connection.id, self, wanted)
                    return
                if isinstance(wanted, Await):
                    wanted.begin().add_done_callback(self._awaited)
                    return
                if wanted is not None and not scheduler.memory.reserve(self._context.connection.id, self, wanted):
                    return
                if scheduler.now_s() >= until_s:
                    scheduler.put(self._context.connection.id, self.take_slice)
                    return
        except StopIteration as end:
            self._end_work()
            if isinstance(end.value, Pending):
                self.ended_with = end.value
                if not end.value.may_be_large:
                    self.give_back()  # it waits for something to happen, perhaps for long
                elif isinstance(end.value, SlicedWork):
                    end.value._outer = self
                else:
                    self._only_waits()
                if self.may_be_large:
                    self.ended_with.deliver_to(self._finish)
            else:
                self.complete(end.value)
        except Exception as failure:
            self._end_work()
            self.fail(failure)

    def _finish(self, response: Message | None, failure: BaseException | None) -> None:
        super()._finish(response, failure)
        self._outer = None  # it refers to this one: the cycle would keep the response until the garbage collector runs

    def _take_value(self) -> Any:
        value, self._value_sent = self._value_sent, None
        return value

    def _take_failure(self) -> BaseException:
        failure, self._failure_sent = self._failure_sent, None
        assert failure is not None
        return failure

    def _only_waits(self) -> None:
        """All is done but for what the request waits for."""
        holder = self
        while holder._outer is not None:
            holder = holder._outer
        if self._scheduler.memory.is_for_requests(holder.reserved_in):
            self._scheduler.memory.waiting.add(holder)

    def _end_work(self) -> None:
        self._is_at_work = False
        if not self._scheduler.memory.is_for_requests(self.reserved_in):
            self.give_back()

    def give_back(self) -> None:
        pool, self.reserved_in = self.reserved_in, None
        if pool is not None:
            pool.give_back(self.reserved_bytes)

    def take_slice(self) -> None:
        began_s = self._scheduler.now_s()
        self.run(began_s + SLICE_S)
        self._context.held_s += self._scheduler.now_s() - began_s

    def hold(self) -> None:
        """The request is parked: this is the response from now on. It took more than one slice, so it may be large."""
        self.may_be_large = True

    def resume(self, value: Any, failure: BaseException | None) -> None:
        """An off-loop call has ended: go on when the scheduler gets to it."""
        if self.is_done:
            return  # its connection has gone
        self._value_sent, self._failure_sent = value, failure
        self._scheduler.put(self._context.connection.id, self.take_slice)

    def _awaited(self, ended: asyncio.Future[Any]) -> None:
        if ended.cancelled():
            self.resume(None, KafkaError(ErrorCode.REQUEST_TIMED_OUT, "what the request waited for has ended: try again"))
        elif (failure := ended.exception()) is not None:
            self.resume(None, failure)
        else:
            self.resume(ended.result(), None)

    def end_if_gone(self) -> None:
        end_if_gone = self._context.connection.end_if_gone
        if end_if_gone is not None:
            end_if_gone()

    def answer_now(self) -> None:
        if self.ended_with is not None:
            self.ended_with.answer_now()

    def give_up(self) -> None:
        if self.ended_with is not None:
            self.ended_with.give_up()

    def abandon(self) -> None:
        super().abandon()
        self._value_sent = None
        self._is_at_work = False
        last: Any = self.ended_with
        while isinstance(last, SlicedWork):
            last = last.ended_with
        task = getattr(last, "task", None)
        if task is not None and not task.done():
            task.add_done_callback(lambda _: self.give_back())  # it holds the request until it has ended
        else:
            self.give_back()
        if self.ended_with is not None:
            self.ended_with.abandon()
        else:
            self._steps.close()
            self._scheduler.memory.pass_over_abandoned()
        self._outer = None


class Scheduler:
    """The scheduler of one node. `now_s` is the running loop's clock unless it is given."""

    def __init__(self, now_s: Callable[[], float] | None = None) -> None:
        self.workers: Workers = InlineWorkers()
        """Runs off-loop calls: in place, unless a node sets it."""
        self.now_s = asyncio.get_running_loop().time if now_s is None else now_s
        self._waiting: RoundRobin[Callable[[], None]] = RoundRobin()
        self._is_scheduled = False
        self._first_slices = 0
        """How many first slices were used up in this turn of the loop."""
        self._small = OffLoopCalls(self)
        self._large = OffLoopCalls(self, watches=True)
        self.memory = RequestMemory()

    def start(self, context: RequestContext, steps: Steps[Handled]) -> Handled:
        """Run the first slice: returns the response if that was all, else a `Pending` whose rest waits in the scheduler."""
        work = SlicedWork(self, context, steps)
        if self._first_slices >= FIRST_SLICES_MAX:
            work.hold()
            self.put(context.connection.id, work.take_slice)
            return work
        work.run(self.now_s() + FIRST_SLICE_S)
        if work.ended_with is not None:
            return work.ended_with
        if not work.is_done:
            work.hold()
            if not self._first_slices:
                asyncio.get_running_loop().call_soon(self._allow_first_slices)
            self._first_slices += 1
            return work
        response, failure = work.outcome
        if failure is not None:
            raise failure
        return response

    def _allow_first_slices(self) -> None:
        self._first_slices = 0

    def put(self, owner: int, run: Callable[[], None]) -> None:
        """Call `run` when it is the turn of `owner`; it should return after about `SLICE_S`."""
        self._waiting.put(owner, run)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        run = self._waiting.take()
        # Scheduled before the slice: what that schedules comes after it, and the loop serves all sockets in between.
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._take_turn)
        run()

    def run_off_loop(self, owner: int, work: Resumed, wanted: OffLoop) -> None:
        """Run a call in a worker thread, then resume `work`."""
        calls = self._small if wanted.memory_bytes <= SMALL_CALL_BYTES else self._large
        calls.put(owner, work, wanted)


class OffLoopCalls:
    """Calls for worker threads, one at a time."""

    __slots__ = ("_running", "_scheduler", "_waiting", "_watches")

    def __init__(self, scheduler: Scheduler, *, watches: bool = False) -> None:
        """`watches`: calls may take seconds, and are not made, or are ended, for a client that has gone."""
        self._scheduler = scheduler
        self._watches = watches
        self._waiting: RoundRobin[tuple[Resumed, OffLoop]] = RoundRobin()
        self._running: asyncio.Task[None] | None = None

    def put(self, owner: int, work: Resumed, wanted: OffLoop) -> None:
        self._waiting.put(owner, (work, wanted))
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                work, wanted = self._waiting.take()
                if self._watches:
                    work.end_if_gone()
                if work.is_done:
                    continue  # its connection has gone
                await self._run_one(work, wanted)
                del work, wanted  # what they hold should not live until the next call has ended
        finally:
            self._running = None

    async def _run_one(self, work: Resumed, wanted: OffLoop) -> None:
        watch = Watch(work) if self._watches else None
        try:
            value = await self._scheduler.workers.run(wanted.call)
        except Exception as failure:
            work.resume(None, failure)
        else:
            work.resume(value, None)
        finally:
            if watch is not None:
                watch.timer.cancel()


class Watch:
    """Looks now and then whether the client of a call that runs is still there. The call asks whether it is wanted."""

    __slots__ = ("_work", "timer")

    def __init__(self, work: Resumed) -> None:
        self._work = work
        self.timer = asyncio.get_running_loop().call_later(WATCH_S, self._look)

    def _look(self) -> None:
        self._work.end_if_gone()
        self.timer = asyncio.get_running_loop().call_later(WATCH_S, self._look)


class Pauses:
    """For coroutines: `await pauses.here()` lets others run once a slice is used up."""

    __slots__ = ("_owner", "_scheduler", "_until_s")

    def __init__(self, context: RequestContext) -> None:
        self._scheduler = context.services.scheduler
        self._owner = context.connection.id
        self._until_s = self._scheduler.now_s() + FIRST_SLICE_S

    async def here(self) -> None:
        scheduler = self._scheduler
        if scheduler.now_s() < self._until_s:
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        scheduler.put(self._owner, lambda: None if turn.done() else turn.set_result(None))
        await turn
        self._until_s = scheduler.now_s() + SLICE_S

    async def off_loop(self, call: Callable[[], T]) -> T:
        """Run a pure call in a worker thread, in turn with those of other connections; returns or raises what it does."""
        waiting: AwaitedCall[T] = AwaitedCall()
        self._scheduler.run_off_loop(self._owner, waiting, OffLoop(call, SMALL_CALL_BYTES))
        result = await waiting.ended
        self._until_s = self._scheduler.now_s() + SLICE_S
        return result


class AwaitedCall(Generic[T]):
    """An off-loop call that a coroutine awaits."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    @property
    def is_done(self) -> bool:
        return self.ended.done()

    def end_if_gone(self) -> None:
        """Others may wait for it, too."""

    def resume(self, value: Any, failure: BaseException | None) -> None:
        if self.ended.done():
            return
        if failure is None:
            self.ended.set_result(value)
        else:
            self.ended.set_exception(failure)


class BackgroundPauses:
    """For the node's own tasks, such as publishing metadata: `await pauses.here()` lets the loop turn after each slice."""

    __slots__ = ("_now_s", "_until_s")

    def __init__(self) -> None:
        self._now_s = asyncio.get_running_loop().time
        self._until_s = self._now_s() + SLICE_S

    async def here(self) -> None:
        if self._now_s() >= self._until_s:
            await asyncio.sleep(0)
            self._until_s = self._now_s() + SLICE_S


def in_slices(context: RequestContext, steps: Steps[Handled]) -> Handled:
    """The response that `steps` make: at once if they are few, else later."""
    return context.services.scheduler.start(context, steps)


def off_loop(context: RequestContext, call: Callable[[], Message]) -> Handled:
    """The response that a pure call makes in a worker thread: for calls that only read the request and immutable images."""
    return in_slices(context, _call_off_loop(call))


def _call_off_loop(call: Callable[[], Message]) -> Steps[Handled]:
    response: Message = yield OffLoop(call, SMALL_CALL_BYTES)
    return response
