"""An event loop in virtual time: when nothing is ready, the clock jumps to the next timer instead of waiting for it.

Everything runs in one thread and in a fixed order, so the same seed gives the same run. There is no input from outside, so a
loop with nothing ready and no timer set can never continue. That raises `Deadlock`, with the tasks that still wait. Work for
threads runs in place.

Built on asyncio's own `BaseEventLoop`, so tasks, futures and timers are those of the real broker. Only the clock and the
loop's single turn (`_run_once`) are replaced.

Several simulated processes can share one loop. Everything that a coroutine started by `spawn` does, starts or schedules belongs
to its `Process`, through asyncio's context variables. `kill` ends a process as the operating system would, in the middle of a
step. Not even a `finally` runs. `pause` stops a process and `resume` lets it go on, like SIGSTOP and SIGCONT. A process may
have a clock that runs fast or slow: `time` and timers are those of the process whose code asks.
"""

import asyncio
import heapq
import inspect
from asyncio import base_events
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

_CLOSINGS_MAX = 1000
TICK_S = 1e-9
"""The least time that passes until a timer fires."""
CANCELLED_MIN = 100
"""With more timers than this, half of them cancelled, the heap is built again without those."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Process:
    """A simulated process, which can be killed and paused. Its clock runs `rate` times as fast as the true time."""

    __slots__ = ("held", "is_dead", "is_paused", "name", "rate", "tasks")

    def __init__(self, name: str, rate: float = 1.0) -> None:
        self.name = name
        self.rate = rate
        self.is_dead = False
        self.is_paused = False
        self.held: list[asyncio.Handle] = []
        """Its callbacks and timers while it is paused."""
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()


_process: ContextVar[Process | None] = ContextVar("ottla_sim_process", default=None)


class Deadlock(AssertionError):
    """Nothing is ready and no timer is set, but tasks still wait."""


class OutOfTime(AssertionError):
    """The run exceeded its limit of virtual time."""


class VirtualLoop(base_events.BaseEventLoop):
    """`time()` is seconds since the loop was created, by the calling process's clock. `run` runs one coroutine to its end."""

    def __init__(self, time_limit_s: float = float("inf")) -> None:
        super().__init__()
        self._now_s = 0.0
        self._time_limit_s = time_limit_s
        self._scheduled: list[tuple[float, _Timer]] = []
        """A heap of timers, with their times: the heap compares floats, and calls no method of a timer unless two are equal."""
        self._timer_cancelled_count = 0
        """As in BaseEventLoop: how many timers in the heap are cancelled."""
        self._dead_tasks: list[tuple[asyncio.Task[Any], Process]] = []
        self._any_dead = False
        self._paused: list[Process] = []
        self.failures: list[BaseException] = []
        """Exceptions of callbacks, and of tasks that were never awaited."""
        self.set_exception_handler(self._note_failure)

    def time(self) -> float:
        process = _process.get()
        return self._now_s if process is None or process.rate == 1.0 else self._now_s * process.rate

    def true_time(self) -> float:
        """Seconds since the loop was created, whatever the calling process's clock says."""
        return self._now_s

    def spend(self, seconds: float) -> None:
        """Let time pass within a callback, as work that takes long does."""
        self._now_s += seconds

    def run(self, work: Coroutine[Any, Any, T], *, close_dead: bool = False) -> T:
        """Run `work` to its end, then cancel the remaining tasks and close the loop.

        `close_dead` also closes the coroutines of dead processes; without it they are kept as long as the loop. An exception in
        a callback fails the run, like one that `work` raises; asyncio would only log it.
        """
        asyncio.set_event_loop(self)
        try:
            try:
                result = self.run_until_complete(work)
            except Exception as later:
                first = self.failures[0] if self.failures else None
                with suppress(Deadlock, OutOfTime):  # a task may wait for what the failure has ended
                    self._cancel_all()
                if first is not None:
                    raise first from later  # it came first, and may be the cause
                raise
            self._cancel_all()
            if self.failures:
                raise self.failures[0]
            return result
        finally:
            if close_dead:
                self._close_dead()
            asyncio.set_event_loop(None)
            self.close()

    def run_in_executor(self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> "asyncio.Future[T]":
        """Run `func` at once, in this thread."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    # Processes

    def spawn(self, process: Process, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run `work` as a task of `process`."""
        context = copy_context()
        context.run(_process.set, process)
        return self.create_task(work, name=f"{process.name}-main", context=context)

    def kill(self, process: Process) -> None:
        """Stop everything of `process`. If a process kills itself, the current call still returns."""
        process.is_dead = self._any_dead = True
        process.held.clear()
        if process in self._paused:
            self._paused.remove(process)
        for task in process.tasks:  # first: only its wake-up handle, cancelled below, may hold a reference to a task
            self._note_dead(task, process)
        timers = [timer for _, timer in self._scheduled]
        for handle in [*self._ready, *timers]:  # type: ignore[attr-defined]  # BaseEventLoop's own queue
            if _is_dead(handle._context):
                handle.cancel()

    def pause(self, process: Process) -> None:
        """Stop `process` until `resume`. What happens to it meanwhile, such as arriving bytes, waits."""
        if process.is_dead or process.is_paused:
            return
        process.is_paused = True
        self._paused.append(process)
        timers, ready = self._scheduled, self._ready  # type: ignore[attr-defined]  # BaseEventLoop's own queue
        for timer in [each for _, each in timers if _is_paused(each._context) and not each.cancelled()]:
            timer._scheduled = False  # it is not in the heap any more
            process.held.append(timer)
        timers[:] = [each for each in timers if each[1]._scheduled]
        heapq.heapify(timers)
        nothing = asyncio.Handle(lambda: None, (), self)
        nothing.cancel()
        for index, handle in enumerate(ready):
            if _is_paused(handle._context):
                process.held.append(handle)
                ready[index] = nothing  # not removed: the loop has counted the handles that it runs in this turn

    def resume(self, process: Process) -> None:
        """Let a paused process go on. Timers that are due by now fire at once, in their order."""
        if process.is_dead or not process.is_paused:
            return
        process.is_paused = False
        self._paused.remove(process)
        held, process.held = process.held, []
        for handle in held:
            if handle.cancelled():
                continue
            if isinstance(handle, _Timer):
                self._push(handle)
            else:
                self._ready.append(handle)  # type: ignore[attr-defined]  # BaseEventLoop's own queue

    def _push(self, timer: "_Timer") -> None:
        heapq.heappush(self._scheduled, (timer._when, timer))
        timer._scheduled = True

    def _note_dead(self, task: "asyncio.Task[Any]", process: Process) -> None:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own switch
        self._dead_tasks.append((task, process))

    def create_task(  # type: ignore[override, unused-ignore]  # 3.11 takes generators too; `more`: what newer Pythons add
        self, coro: Coroutine[Any, Any, T], *, context: Context | None = None, **more: Any
    ) -> "asyncio.Task[T]":
        task = super().create_task(coro, context=context, **more)
        process = _process.get() if context is None else context.get(_process)
        if process is not None:
            process.tasks.add(task)
            if process.is_dead:
                self._note_dead(task, process)
        return task

    def call_soon(self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None) -> asyncio.Handle:
        handle = super().call_soon(callback, *args, context=context)
        if self._any_dead and _is_dead(handle._context):  # type: ignore[attr-defined]  # Handle's own
            handle.cancel()
        elif self._paused and _is_paused(handle._context):  # type: ignore[attr-defined]
            held = handle._context[_process].held  # type: ignore[attr-defined]
            held.append(self._ready.pop())  # type: ignore[attr-defined]  # BaseEventLoop's own queue
        return handle

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        process = _process.get()
        rate = 1.0 if process is None else process.rate
        return self._call_at(when if rate == 1.0 else when / rate, when, callback, args, context)

    def call_at_true(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Like `call_at`, with a true time."""
        return self._call_at(when, when, callback, args, context)

    def _call_at(
        self, true_s: float, shown_s: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> asyncio.TimerHandle:
        # Time passes before any timer fires. Else code that sums up floats could wait forever for a time that rounds to now.
        timer = _Timer(max(true_s, self._now_s + TICK_S), callback, args, self, context)
        timer.shown_s = shown_s
        process = timer._context.get(_process)
        if process is not None and process.is_paused:
            process.held.append(timer)
        else:
            self._push(timer)
        if process is not None and process.is_dead:
            timer.cancel()
        return timer

    # Time

    def _run_once(self) -> None:
        """One turn, as BaseEventLoop's: move timers that are due to the callbacks, and run those that are ready now."""
        timers, ready = self._scheduled, self._ready  # type: ignore[attr-defined]  # BaseEventLoop's own queue
        if len(timers) > CANCELLED_MIN and self._timer_cancelled_count > len(timers) / 2:
            for _, timer in timers:
                timer._scheduled = not timer._cancelled
            timers[:] = [each for each in timers if each[1]._scheduled]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        else:
            while timers and timers[0][1]._cancelled:
                self._timer_cancelled_count -= 1
                heapq.heappop(timers)[1]._scheduled = False
        if ready or self._stopping:  # type: ignore[attr-defined]  # BaseEventLoop's own
            self.tick()
        else:
            self.jump()
        end_s = self._now_s + TICK_S
        while timers and timers[0][0] < end_s:
            timer = heapq.heappop(timers)[1]
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def tick(self) -> None:
        """Let the least time pass if a timer waits for it: tasks that keep the loop busy must not stop the time."""
        if self._scheduled:
            when_s = self._scheduled[0][0]
            if when_s <= self._now_s + TICK_S:
                self._now_s = max(self._now_s, when_s)

    def jump(self) -> None:
        """Nothing is ready: move the time to the next timer."""
        if not self._scheduled:
            raise Deadlock(f"nothing can happen any more at {self._now_s:.6f} s, but these still wait: {self._waiting()}")
        self._now_s = max(self._now_s, self._scheduled[0][0])
        if self._now_s > self._time_limit_s:
            raise OutOfTime(
                f"the run was given {self._time_limit_s} s of virtual time, and these still wait: {self._waiting()}"
            )

    def _waiting(self) -> str:
        tasks = [(task.get_name(), _where(task)) for task in self._living_tasks()]
        return ", ".join(f"{name} at {where}" for name, where in tasks) or "no task"

    def _cancel_all(self) -> None:
        for process in list(self._paused):
            self.resume(process)
        left = self._living_tasks()
        for task in left:
            task.cancel()
        if left:
            self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        if not self._any_dead:  # generators of a dead process must not run on
            self.run_until_complete(self.shutdown_asyncgens())

    def _close_dead(self) -> None:
        """Close the coroutines of dead processes and ignore their errors. What they do while closing has no effect.

        Tasks that they create while closing belong to the same process, and are closed after them.
        """
        asyncio._set_running_loop(self)
        try:
            for task, process in self._dead_tasks:  # grows during the loop
                context = copy_context()
                context.run(_process.set, process)
                context.run(_close_chain, task.get_coro())
        finally:
            asyncio._set_running_loop(None)
        self._dead_tasks.clear()

    def _living_tasks(self) -> "list[asyncio.Task[Any]]":
        """Sorted by name, so that the order is the same in every run."""
        living = asyncio.all_tasks(self).difference(task for task, _ in self._dead_tasks)
        return sorted(living, key=lambda task: (len(task.get_name()), task.get_name()))

    def _note_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(context.get("exception") or AssertionError(context["message"]))

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass  # wakes a sleeping loop from another thread; this loop never sleeps


class _Timer(asyncio.TimerHandle):
    """A timer whose `when()` is by the clock of the process that set it."""

    __slots__ = ("shown_s",)
    shown_s: float
    _when: float
    _context: Context
    _scheduled: bool
    _cancelled: bool

    def when(self) -> float:
        return self.shown_s


def _is_dead(context: Context) -> bool:
    process = context.get(_process)
    return process is not None and process.is_dead


def _is_paused(context: Context) -> bool:
    process = context.get(_process)
    return process is not None and process.is_paused


def _close_chain(work: Any) -> None:
    """Close a coroutine, innermost awaited one first. Otherwise the destructors of inner ones would print warnings."""
    for _ in range(_CLOSINGS_MAX):  # a coroutine that awaits while it is being closed must be closed again
        if work.cr_frame is None:
            return
        chain = [work]
        while inspect.iscoroutine(inner := chain[-1].cr_await):
            chain.append(inner)
        for each in reversed(chain):
            try:
                each.close()
            except BaseException:
                break


def _where(task: "asyncio.Task[Any]") -> str:
    frames = task.get_stack(limit=1)
    return f"{frames[-1].f_code.co_filename}:{frames[-1].f_lineno}" if frames else "its start"
