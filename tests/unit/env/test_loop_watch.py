"""The contract of `env/loop_watch.py`, as the real watch keeps it."""

import asyncio
import time

from ottla.env.loop_watch import REPORTED_TURN_S, LoopTurn, LoopWatch
from ottla.env.real.loop_watch import RealLoopWatch


def test_long_turns_are_reported_on_the_loops_clock_and_short_ones_are_not() -> None:
    async def whole() -> tuple[list[LoopTurn], float, float]:
        watch: LoopWatch = RealLoopWatch()
        turns: list[LoopTurn] = []
        assert watch.start(turns.append)
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        before_s = loop.time()
        time.sleep(2 * REPORTED_TURN_S)
        after_s = loop.time()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        watch.stop()
        time.sleep(2 * REPORTED_TURN_S)  # after the end of the watch
        await asyncio.sleep(0)
        return turns, before_s, after_s

    turns, before_s, after_s = asyncio.run(whole())
    turn = max(turns, key=lambda each: each.held_s)
    assert turn.began_s <= before_s
    assert turn.began_s + turn.held_s >= after_s
    assert all(each.held_s >= REPORTED_TURN_S for each in turns)
    assert len([each for each in turns if each.began_s > after_s]) == 0
