"""The watch of a real loop: long turns are reported with the place where they were seen; idle loops cost nothing."""

import asyncio
import threading
import time

import pytest

from ottla.env.loop_watch import LoopTurn
from ottla.env.real.loop_watch import LOOK_S, RealLoopWatch


def hold_the_loop(seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        pass


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_long_turn_is_reported_with_its_place_and_task() -> None:
    async def whole() -> tuple[list[LoopTurn], "asyncio.Task[None] | None"]:
        watch, turns = RealLoopWatch(), []
        assert watch.start(turns.append)
        await asyncio.sleep(3 * LOOK_S)  # the thread parks meanwhile
        assert not turns

        async def work() -> None:
            hold_the_loop(10 * LOOK_S)

        task = asyncio.get_running_loop().create_task(work())
        await task
        await settle()
        watch.stop()
        return turns, task

    turns, task = asyncio.run(whole())
    turn = max(turns, key=lambda each: each.held_s)
    assert turn.held_s >= 10 * LOOK_S
    assert "hold_the_loop" in turn.frames[0]
    assert turn.task is task
    assert turn.cpu_share is None or 0 <= turn.cpu_share <= 1


def test_waiting_turn_has_a_low_share_of_the_processor() -> None:
    async def whole() -> list[LoopTurn]:
        watch, turns = RealLoopWatch(), []
        watch.start(turns.append)
        await asyncio.sleep(0)
        time.sleep(10 * LOOK_S)
        await settle()
        watch.stop()
        return turns

    share = max(asyncio.run(whole()), key=lambda each: each.held_s).cpu_share
    assert share is None or share < 0.5


def test_stop_restores_the_selector_and_ends_the_thread() -> None:
    async def whole() -> None:
        selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
        before = threading.active_count()
        first, second = RealLoopWatch(), RealLoopWatch()
        turns: list[LoopTurn] = []
        assert first.start(turns.append)
        assert second.start(turns.append)
        first.stop()  # the second one still calls the first one's select
        hold_the_loop(4 * LOOK_S)
        await settle()
        assert len(turns) == 1
        second.stop()
        second.stop()
        assert threading.active_count() == before
        await asyncio.sleep(0.01)
        third = RealLoopWatch()
        third.start(turns.append)
        third.stop()
        assert third.start(turns.append) is False, "a watch is started once"
        assert callable(selector.select)

    asyncio.run(whole())


def test_last_watch_to_stop_leaves_the_selector_as_it_was() -> None:
    async def whole() -> None:
        selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
        watch = RealLoopWatch()
        watch.start(lambda turn: None)
        assert "select" in selector.__dict__
        watch.stop()
        assert "select" not in selector.__dict__

    asyncio.run(whole())


def test_thread_is_parked_while_the_loop_is_idle() -> None:
    async def whole() -> None:
        watch = RealLoopWatch()
        watch.start(lambda turn: None)
        deadline_s = time.monotonic() + 30
        is_parked = False
        while not is_parked and time.monotonic() < deadline_s:
            is_parked = await asyncio.get_running_loop().run_in_executor(None, parked_after, watch, 6 * LOOK_S)
        watch.stop()
        assert is_parked

    def parked_after(watch: RealLoopWatch, seconds: float) -> bool:
        time.sleep(seconds)
        return watch._is_parked

    asyncio.run(whole())


def test_loop_without_a_selector_is_not_watched() -> None:
    from ottla.sim.loop import VirtualLoop

    async def whole() -> None:
        assert RealLoopWatch().start(lambda turn: pytest.fail("no time passes here")) is False

    VirtualLoop(1000).run(whole())
