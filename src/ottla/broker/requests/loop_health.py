"""Loop health: how long requests and background work hold the event loop, and a log line for holds that others notice.

While one request or task step runs, all others wait. The pipeline measures its requests with the clock readings that it takes
anyway and notes the long ones here. `env/loop_watch.py` reports the turns of the loop that took long, whatever ran in them,
with the place where the loop's thread was seen. A hold of `LOGGED_S` gets a warning that names the request, its client and the
place; background work is named by its room. At most one line per cause in `LINE_EVERY_S`: a client that causes holds on purpose
cannot fill the log.

One node, one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.requests.context import ConnectionInfo
from ottla.broker.requests.counters import ApiCounters
from ottla.env.loop_watch import LoopTurn, LoopWatch

logger = logging.getLogger("ottla.loop")

LOGGED_S = 0.2
NOTED_S = 0.02
"""Requests that hold the loop longer are remembered until the turn ends: many of them can make one long turn."""

LINE_EVERY_S = 10.0

WORK_OF_MODULES = (
    ("ottla.broker.requests.pipeline", "requests"),
    ("ottla.broker.handlers", "requests"),
    ("ottla.log.compaction", "compaction"),
    ("ottla.broker.runtime.coordinators", "coordinators"),
    ("ottla.broker.metrics", "metrics"),
    ("ottla.broker.partitions.upkeep_loop", "upkeep"),
    ("ottla.broker.purgatory", "parked requests"),
    ("ottla.broker.node._publish", "publishing"),
    ("ottla.broker.node", "start and stop"),
    ("ottla.broker.runtime", "metadata log"),
    ("ottla.broker.net", "network"),
    ("ottla.env.real", "network"),
)
"""The name of background work, by the first entry that matches any frame of its stack."""

OTHER_WORK = "other"


class RequestHold(NamedTuple):
    """A request that held the loop, with what a log line says about it."""

    began_s: float
    held_s: float
    api: str
    version: int
    size_bytes: int
    client_id: str | None
    connection: ConnectionInfo

    def __str__(self) -> str:
        host, port = self.connection.peer
        return (
            f"{self.api} version {self.version} of {self.size_bytes} bytes (client id {self.client_id!r}) "
            f"from {host}:{port} on {self.connection.listener}"
        )


class WorkHolds:
    """The holds by one kind of background work."""

    __slots__ = ("hold_s_max", "holds")

    def __init__(self) -> None:
        self.hold_s_max = 0.0
        self.holds = 0


class LoopHealth:
    """The loop health of one node."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._is_watched = False
        self._watch: LoopWatch | None = None
        self._seen = (monotonic_s(), 0.0)
        self._idle_share = 1.0
        self._noted: list[RequestHold] = []
        self._lines: dict[str, tuple[float, int]] = {}  # cause: when its line was logged, lines left out since
        self.work: dict[str, WorkHolds] = {}
        """By kind of work: turns of 0.1 s and more that were not one request's."""
        self.holds_of_requests: dict[str, int] = {}
        """By API: requests that held the loop for `LOGGED_S` or more."""
        self.requests_of_tasks: dict[asyncio.Task[Any], RequestHold] = {}
        """The requests that tasks are working on."""

    def watch(self, loop_watch: LoopWatch | None) -> None:
        """Follow the running loop's turns, if they can be watched."""
        self._is_watched = loop_watch is not None and loop_watch.start(self.turn_ended)
        self._watch = loop_watch if self._is_watched else None
        self._seen = (self._monotonic_s(), 0.0)

    def idle_share(self) -> float | None:
        """The share of the time that the loop had nothing to do, since the last look a second or more ago; None if unknown."""
        if self._watch is None:
            return None
        now_s, busy_s = self._monotonic_s(), self._watch.busy_s()
        passed_s = now_s - self._seen[0]
        if passed_s >= 1.0:
            self._idle_share = min(1.0, max(0.0, 1.0 - (busy_s - self._seen[1]) / passed_s))
            self._seen = now_s, busy_s
        return self._idle_share

    def follow_task(self, task: asyncio.Task[Any], request: RequestHold) -> None:
        """`task` works for `request`: its long steps are reported with the request's client."""
        self.requests_of_tasks[task] = request
        task.add_done_callback(self.requests_of_tasks.pop)

    def note_request(self, counters: ApiCounters, hold: RequestHold) -> None:
        """A request held the loop for longer than `counters.hold_noted_s`."""
        if hold.held_s > counters.hold_s_max:
            counters.hold_s_max = hold.held_s
        counters.hold_noted_s = min(counters.hold_s_max, NOTED_S)
        if hold.held_s >= LOGGED_S:
            self.holds_of_requests[hold.api] = self.holds_of_requests.get(hold.api, 0) + 1
        if not self._is_watched:
            if hold.held_s >= LOGGED_S:
                self._log(hold.api, hold.held_s, str(hold), "")
        elif hold.held_s >= NOTED_S:
            if self._noted and hold.began_s - self._noted[0].began_s > 60.0:
                self._noted.clear()  # of turns that were too short to be reported
            self._noted.append(hold)

    def turn_ended(self, turn: LoopTurn) -> None:
        """A turn of the loop took long."""
        noted = [each for each in self._noted if each.began_s >= turn.began_s]
        self._noted.clear()
        where = _where(turn)
        long = [each for each in noted if each.held_s >= LOGGED_S]
        for each in long:
            self._log(each.api, each.held_s, str(each), where)
        rest_s = turn.held_s - sum(each.held_s for each in long)
        work = _work_of(turn)
        request = None if turn.task is None else self.requests_of_tasks.get(turn.task)
        if not noted or rest_s >= LOGGED_S:
            cause = work if request is None else request.api
            counted = self.work.setdefault(cause, WorkHolds())
            counted.hold_s_max = max(counted.hold_s_max, rest_s)
            counted.holds += rest_s >= LOGGED_S
            if rest_s >= LOGGED_S:
                self._log(cause, rest_s, _what(work, request, noted, rest_s), where)

    def _log(self, cause: str, held_s: float, what: str, where: str) -> None:
        now_s = self._monotonic_s()
        logged_s, omitted = self._lines.get(cause, (-LINE_EVERY_S, 0))
        if now_s - logged_s < LINE_EVERY_S:
            self._lines[cause] = (logged_s, omitted + 1)
            return
        self._lines[cause] = (now_s, 0)
        more = f" ({omitted} more such holds since the last line)" if omitted else ""
        logger.warning("the event loop was held for %d ms by %s%s%s", held_s * 1000, what, where, more)


def _what(work: str, request: RequestHold | None, noted: list[RequestHold], held_s: float) -> str:
    if request is not None:
        return f"a task for {request}"
    short = [each for each in noted if each.held_s < LOGGED_S]
    if sum(each.held_s for each in short) > held_s / 2:
        longest = max(short, key=lambda each: each.held_s)
        return f"{len(short)} requests in one turn; the longest, with {longest.held_s * 1000:.0f} ms, was {longest}"
    return f"background work: {work}"


def _where(turn: LoopTurn) -> str:
    if not turn.frames:
        return ""
    share = ""
    if turn.cpu_share is not None and turn.cpu_share < 0.5:
        share = f", and waited for the device, a lock or the processor {100 - turn.cpu_share * 100:.0f} % of the time"
    return f"; seen in {' < '.join(turn.frames)}{share}"


def _work_of(turn: LoopTurn) -> str:
    for prefix, work in WORK_OF_MODULES:
        if any(frame.startswith(prefix) for frame in turn.frames):
            return work
    return OTHER_WORK
