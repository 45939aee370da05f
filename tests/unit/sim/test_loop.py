"""The loop in virtual time: fast, deterministic, and reports deadlocks."""

import asyncio
import gc
import time
from collections.abc import Callable
from contextvars import Context, copy_context
from random import Random

import pytest

from ottla.sim.loop import Deadlock, OutOfTime, Process, VirtualLoop
from ottla.sim.world import LoopClock, SeededRandomness


def test_time_jumps_to_the_next_timer() -> None:
    async def work() -> list[float]:
        loop = asyncio.get_running_loop()
        seen: list[float] = []
        loop.call_later(86_400 * 3, lambda: seen.append(loop.time()))
        await asyncio.sleep(1.5)
        seen.append(loop.time())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.Event().wait()
        seen.append(loop.time())
        await asyncio.sleep(86_400 * 4)
        return seen

    begun_s = time.process_time()
    assert VirtualLoop().run(work()) == [1.5, 11.5, 86_400 * 3]
    assert time.process_time() - begun_s < 2


def test_a_wait_for_a_time_that_rounds_to_now_ends() -> None:
    loop = VirtualLoop()

    async def work() -> int:
        turns = 0
        while int(loop.time() * 1000) < 1023:  # 1.023 * 1000 is a bit less than 1023
            turns += 1
            await asyncio.sleep(max(0.000_000_000_1, 1.023 - loop.time()))
        return turns

    assert loop.run(work()) == 2


def test_work_for_threads_is_done_in_place() -> None:
    async def work() -> None:
        assert await asyncio.to_thread(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)

    VirtualLoop().run(work())


def test_a_wait_that_can_never_end_raises_deadlock() -> None:
    async def waits_for_nothing() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"0\.0+ s.*test_loop\.py"):
        VirtualLoop().run(waits_for_nothing())


def test_exceeding_the_time_limit_raises_out_of_time() -> None:
    async def for_ever() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(OutOfTime, match=r"50 s.*test_loop\.py"):
        VirtualLoop(50).run(for_ever())


def test_a_failure_in_a_callback_fails_the_run() -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(ZeroDivisionError):
        VirtualLoop().run(work())


@pytest.mark.parametrize("is_waking", [True, False])
def test_a_task_that_does_not_end_when_cancelled_hides_no_failure(is_waking: bool) -> None:
    async def clings() -> None:
        while True:
            try:
                await (asyncio.sleep(1) if is_waking else asyncio.Event().wait())
            except asyncio.CancelledError:
                continue

    async def work() -> None:
        task = asyncio.get_running_loop().create_task(clings())
        await asyncio.sleep(0)
        raise ZeroDivisionError(task.get_name())

    with pytest.raises(ZeroDivisionError):
        VirtualLoop(50).run(work())


def test_remaining_tasks_are_cancelled() -> None:
    words: list[str] = []

    async def left_behind() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            words.append("last words")

    async def work() -> None:
        asyncio.get_running_loop().create_task(left_behind())
        await asyncio.sleep(0)

    VirtualLoop().run(work())
    assert words == ["last words"]


def test_the_same_seed_is_the_same_run() -> None:
    def history(seed: int) -> list[tuple[int, float]]:
        random = Random(seed)
        seen: list[tuple[int, float]] = []

        async def one(number: int) -> None:
            for _ in range(10):
                await asyncio.sleep(random.choice([0, 0.1, random.random()]))
                seen.append((number, asyncio.get_running_loop().time()))

        async def work() -> None:
            await asyncio.gather(*(one(number) for number in range(20)))

        VirtualLoop().run(work())
        return seen

    assert history(1) == history(1)
    assert history(1) != history(2)


def run_with_process(act: Callable[[VirtualLoop, Process, list[str]], None]) -> list[str]:
    """A process that ticks with every kind of callback; `act` runs after two and a half seconds."""
    loop = VirtualLoop()
    process = Process("node-1")
    seen: list[str] = []

    async def helper() -> None:
        while True:
            await asyncio.sleep(1)
            seen.append("task")

    def tick() -> None:
        seen.append("timer")
        asyncio.get_running_loop().call_later(1, tick)

    async def node() -> None:
        asyncio.get_running_loop().call_later(1, tick)
        task = asyncio.get_running_loop().create_task(helper())
        try:
            await task
        finally:
            seen.append("finally")

    async def world() -> None:
        loop.spawn(process, node())
        await asyncio.sleep(2.5)
        seen.append("act")
        act(loop, process, seen)
        await asyncio.sleep(2)

    loop.run(world())
    return seen


def test_a_killed_process_runs_no_more() -> None:
    assert run_with_process(lambda loop, process, seen: loop.kill(process)) == ["timer", "task"] * 2 + ["act"]


def test_a_process_that_is_not_killed_goes_on() -> None:
    seen = run_with_process(lambda loop, process, seen: None)
    assert seen == ["timer", "task"] * 2 + ["act"] + ["timer", "task"] * 2 + ["finally"]


def test_coroutines_of_a_dead_process_are_closed_without_warnings(recwarn: pytest.WarningsRecorder) -> None:
    loop = VirtualLoop()
    process = Process("node-1")
    seen: list[str] = []

    async def other() -> None:
        seen.append("another task")

    async def node() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("closed")
            await asyncio.sleep(1)
            asyncio.get_running_loop().create_task(other())
            await asyncio.sleep(1)
            seen.append("closed for good")

    async def world() -> None:
        loop.spawn(process, node())
        await asyncio.sleep(1)
        loop.kill(process)
        await asyncio.sleep(1)
        seen.append("end")

    loop.run(world(), close_dead=True)
    assert seen == ["end", "closed"], "closed at each of its awaits, and none of its tasks has run"
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


def test_a_task_created_in_the_killing_step_is_dead_too() -> None:
    loop = VirtualLoop()
    process = Process("node-1")
    seen: list[str] = []

    async def other() -> None:
        seen.append("another task")

    async def node() -> None:
        loop.kill(process)
        asyncio.get_running_loop().create_task(other())

    async def world() -> None:
        loop.spawn(process, node())
        await asyncio.sleep(1)

    loop.run(world(), close_dead=True)
    assert seen == []


def test_a_task_killed_before_its_wake_up_is_closed_without_warnings() -> None:
    loop = VirtualLoop()
    process = Process("node-1")

    async def node() -> None:
        news: asyncio.Future[None] = loop.create_future()
        loop.call_later(1, lambda: (news.set_result(None), loop.kill(process)))
        await news  # from `set_result` on, only its wake-up handle refers to this task

    async def world() -> None:
        loop.spawn(process, node())
        await asyncio.sleep(2)

    loop.run(world(), close_dead=True)  # raises if a destructor warns


def test_a_killed_process_is_not_woken_by_a_future() -> None:
    loop = VirtualLoop()
    process = Process("node-1")
    seen: list[str] = []

    async def node(future: "asyncio.Future[None]") -> None:
        await future
        seen.append("woken")

    async def world() -> None:
        future = loop.create_future()
        loop.spawn(process, node(future))
        await asyncio.sleep(1)
        loop.kill(process)
        future.set_result(None)
        await asyncio.sleep(1)

    loop.run(world())
    assert seen == []


def test_a_clock_that_follows_the_loop() -> None:
    async def work() -> None:
        clock = LoopClock(asyncio.get_running_loop(), now_ms=1_000)
        await asyncio.sleep(2.5)
        assert clock.monotonic_s() == 2.5
        assert clock.now_ms() == 3_500
        clock.jump(-3_000)
        assert clock.now_ms() == 500
        assert clock.monotonic_s() == 2.5

    VirtualLoop().run(work())


def test_seeded_randomness() -> None:
    first, second = SeededRandomness(Random(5)), SeededRandomness(Random(5))
    assert [first.new_uuid() for _ in range(100)] == [second.new_uuid() for _ in range(100)]
    assert first.below(1000) == second.below(1000)


def test_a_busy_loop_does_not_stop_a_timer_that_rounds_to_now() -> None:
    async def play() -> None:
        asyncio.get_running_loop().call_later(1e-30, fired.set)
        while not fired.is_set():
            await asyncio.sleep(0)

    fired = asyncio.Event()
    VirtualLoop().run(play())


def test_a_paused_process_does_nothing_until_it_is_resumed() -> None:
    loop = VirtualLoop()
    seen: list[tuple[int, float]] = []
    process = Process("p")

    async def ticks() -> None:
        for number in range(6):
            seen.append((number, loop.time()))
            await asyncio.sleep(1)

    async def work() -> None:
        task = loop.spawn(process, ticks())
        await asyncio.sleep(2.5)
        loop.pause(process)
        loop.pause(process)
        await asyncio.sleep(10)
        loop.resume(process)
        await task

    loop.run(work())
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 12.5), (4, 13.5), (5, 14.5)]


def test_what_others_schedule_for_a_paused_process_waits_in_order() -> None:
    loop = VirtualLoop()
    seen: list[str] = []
    process = Process("p")

    async def work() -> None:
        await loop.spawn(process, keep_context())
        loop.pause(process)
        loop.call_later(2, seen.append, "second", context=inside[0])
        loop.call_later(1, seen.append, "first", context=inside[0])
        loop.call_later(9, seen.append, "last", context=inside[0])
        loop.call_soon(seen.append, "at once", context=inside[0])
        cancelled = loop.call_later(1, seen.append, "never", context=inside[0])
        await asyncio.sleep(5)
        cancelled.cancel()
        assert seen == []
        loop.resume(process)
        await asyncio.sleep(1)
        assert seen == ["at once", "first", "second"]
        await asyncio.sleep(4)
        assert seen[3:] == ["last"]

    inside: list[Context] = []

    async def keep_context() -> None:
        inside.append(copy_context())

    loop.run(work())


def test_a_paused_process_can_be_killed_and_a_run_can_end_with_one() -> None:
    loop = VirtualLoop()
    seen: list[float] = []

    async def ticks() -> None:
        while True:
            seen.append(loop.time())
            await asyncio.sleep(1)

    async def work() -> None:
        killed, paused = Process("killed"), Process("paused")
        for process in (killed, paused):
            loop.spawn(process, ticks())
        await asyncio.sleep(0.5)
        loop.pause(killed)
        loop.pause(paused)
        loop.kill(killed)
        loop.resume(killed)
        await asyncio.sleep(5)

    loop.run(work(), close_dead=True)
    assert seen == [0, 0]


def test_the_clock_of_a_process_may_be_fast_or_slow() -> None:
    loop = VirtualLoop()

    async def wait() -> tuple[float, float]:
        begun_s, timer = loop.time(), loop.call_later(1, lambda: None)
        assert timer.when() == begun_s + 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.Event().wait()
        return loop.time() - begun_s, loop.true_time()

    async def work() -> None:
        assert await loop.spawn(Process("fast", 2.0), wait()) == (pytest.approx(2), pytest.approx(1))
        assert await loop.spawn(Process("slow", 0.5), wait()) == (pytest.approx(2), pytest.approx(5))
        assert loop.time() == loop.true_time() == pytest.approx(5)

    loop.run(work())
