"""`RealLoopWatch`: times every turn of an asyncio loop, and looks from a thread at what a long turn is doing.

The turn is timed around the loop's call of its selector: two readings of the clock per turn, 0.2 µs. asyncio has no public
place for that, so the selector's `select` is shadowed on the instance; a loop without a selector is not watched.

The thread looks every `LOOK_S` and parks itself while the loop is idle. If it finds the same turn as at its last look, it notes
the stack of the loop's thread. So a turn of two looks is always seen, and one of a single look sometimes.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.env.loop_watch import REPORTED_TURN_S, LoopTurn

LOOK_S = 0.05
FRAMES_MAX = 8
_PACKAGE = "ottla"


class _Look(NamedTuple):
    """What the thread saw of one turn."""

    began_s: float
    at_s: float
    cpu_s: float | None
    frames: tuple[str, ...]
    task: asyncio.Task[Any] | None


class RealLoopWatch:
    """`LoopWatch` with a thread of its own, which runs from `start` to `stop`."""

    def __init__(self) -> None:
        self._on_turn: Callable[[LoopTurn], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread_id = 0
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._look: _Look | None = None
        self._restore: Callable[[], None] | None = None
        # Shared with the thread; single stores, so that no lock is needed.
        self._turn_began_s = 0.0
        self._busy_s = 0.0
        self._is_polling = False
        self._is_parked = False
        self._is_stopped = False

    def start(self, on_turn: Callable[[LoopTurn], None]) -> bool:
        self._loop = loop = asyncio.get_running_loop()
        selector = getattr(loop, "_selector", None)
        if not isinstance(selector, selectors.BaseSelector) or self._thread is not None:
            return False
        self._on_turn = on_turn
        self._loop_thread_id = threading.get_ident()
        self._turn_began_s = time.monotonic()
        shadowed = selector.__dict__
        before = shadowed.get("select")  # of another watch of this loop
        timed = shadowed["select"] = self._timed(selector.select)

        def restore() -> None:
            if shadowed.get("select") is not timed:
                return  # another watch was started later, and calls `timed`
            del shadowed["select"]
            if before is not None:
                shadowed["select"] = before

        self._restore = restore
        self._thread = threading.Thread(target=self._run, name="ottla-loop-watch", daemon=True)
        self._thread.start()
        return True

    def stop(self) -> None:
        self._on_turn = None
        self._is_stopped = True
        self._wake.set()
        if self._restore is not None:
            self._restore()
            self._restore = None
        if self._thread is not None:
            self._thread.join()

    def busy_s(self) -> float:
        return self._busy_s

    # On the loop

    def _timed(self, select: Callable[[float | None], Any]) -> Callable[[float | None], Any]:
        monotonic = time.monotonic

        def timed_select(timeout: float | None = None) -> Any:
            held_s = monotonic() - self._turn_began_s
            self._busy_s += held_s
            if held_s >= REPORTED_TURN_S:
                self._report(held_s)
            self._is_polling = True
            events = select(timeout)
            self._turn_began_s = monotonic()
            self._is_polling = False
            if self._is_parked:
                self._is_parked = False
                self._wake.set()
            return events

        return timed_select

    def _report(self, held_s: float) -> None:
        on_turn, look, began_s = self._on_turn, self._look, self._turn_began_s
        self._look = None
        if on_turn is None:
            return
        if look is None or look.began_s != began_s:
            on_turn(LoopTurn(began_s, held_s, (), None, None))
            return
        since_s = began_s + held_s - look.at_s
        share = None
        if look.cpu_s is not None and since_s > 0:
            share = min(1.0, (time.thread_time() - look.cpu_s) / since_s)
        on_turn(LoopTurn(began_s, held_s, look.frames, look.task, share))

    # In the thread

    def _run(self) -> None:
        seen_s = 0.0
        while not self._is_stopped:
            began_s = self._turn_began_s
            if began_s != seen_s:
                seen_s = began_s
            elif self._is_polling:
                self._is_parked = True
                if self._turn_began_s == seen_s and not self._is_stopped:  # else a turn began before it could see the flag
                    self._wake.wait()
                self._is_parked = False
                self._wake.clear()
                continue
            elif self._look is None or self._look.began_s != began_s:
                self._look_at(began_s)
            if self._wake.wait(LOOK_S):
                self._wake.clear()

    def _look_at(self, began_s: float) -> None:
        assert self._loop is not None
        frame = sys._current_frames().get(self._loop_thread_id)
        task = asyncio.current_task(self._loop)
        cpu_s = _cpu_s(self._loop_thread_id)
        frames: list[str] = []
        while frame is not None and len(frames) < FRAMES_MAX:
            module = frame.f_globals.get("__name__", "?")
            if not frames or module.startswith(_PACKAGE):
                frames.append(f"{module}.{frame.f_code.co_name}:{frame.f_lineno}")
            frame = frame.f_back
        if self._turn_began_s == began_s and not self._is_polling:
            self._look = _Look(began_s, time.monotonic(), cpu_s, tuple(frames), task)


def _cpu_s(thread_id: int) -> float | None:
    """The processor time of a thread so far; None where the system does not tell."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread_id))
    except (AttributeError, OSError):
        return None
