"""Loads of one Python thread over many connections; measures the number of answers and the latency of each.

`saturate` keeps one request in flight on each connection. `paced` sends at a fixed rate, whether or not answers come, and
measures each latency from the time when the request was due: a stall of the server delays all requests that were due during it.
"""

import math
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

from bench.side_by_side.errors import BadReply
from bench.side_by_side.loads.frames import CheckReply

RECEIVE_BYTES = 1 << 16
GIVE_UP_S = 60


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of `values` do not exceed."""
    return sorted(values)[max(1, math.ceil(len(values) * share)) - 1]


class Caller:
    """One connection: the request it repeats, the due times of requests in flight, and the part of the next reply received."""

    def __init__(self, connection: socket.socket, frame: bytes) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._frame = frame
        self.due: deque[float] = deque()
        self._received = bytearray()

    def send(self, due: float) -> None:
        self.due.append(due)
        try:
            sent = self.connection.send(self._frame)
        except BlockingIOError:
            sent = 0
        if sent < len(self._frame):  # the socket is full: block; due times charge the wait to the server
            self.connection.settimeout(GIVE_UP_S)
            self.connection.sendall(self._frame[sent:])
            self.connection.setblocking(False)

    def replies(self) -> list[bytes]:
        """The replies that are complete now, without their sizes."""
        data = self.connection.recv(RECEIVE_BYTES)
        if not data:
            raise BadReply("the server closed a connection in the middle of a load")
        self._received += data
        complete = []
        while len(self._received) >= 4 and len(self._received) >= (end := 4 + int.from_bytes(self._received[:4], "big")):
            complete.append(bytes(self._received[4:end]))
            del self._received[:end]
        return complete


class Load:
    """Callers on one selector. Use as a context manager: it closes their connections."""

    def __init__(self, callers: Sequence[Caller], check: CheckReply) -> None:
        self._callers = callers
        self._check = check
        self._selector = selectors.DefaultSelector()
        for caller in callers:
            self._selector.register(caller.connection, selectors.EVENT_READ, caller)
        self._samples: list[tuple[float, float]] = []

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._selector.close()
        for caller in self._callers:
            caller.connection.close()

    def saturate(self, duration_s: float) -> float:
        """Answers per second, with one request in flight on every connection."""
        began = time.perf_counter()
        end = began + duration_s
        answers = 0
        for caller in self._callers:
            caller.send(began)
        while (now := time.perf_counter()) < end:
            for caller in self._answered(end - now):
                answers += 1
                caller.send(now)
        rate = answers / (time.perf_counter() - began)
        self._drain()
        return rate

    def paced(self, per_second: float, over: Callable[[], bool]) -> list[tuple[float, float]]:
        """(due time, seconds from then to the answer) of requests sent at a steady rate, until `over`."""
        self._samples.clear()
        began = time.perf_counter()
        sent = 0
        while not over():
            due = began + sent / per_second
            wait_s = due - time.perf_counter()
            if wait_s > 0:
                self._answered(wait_s)
            else:
                self._callers[sent % len(self._callers)].send(due)
                sent += 1
                self._answered(0)
        self._drain()
        return list(self._samples)

    def _answered(self, timeout_s: float) -> list[Caller]:
        """Wait for answers; the callers that got one, once per answer."""
        served = []
        for key, _ in self._selector.select(timeout_s):
            caller: Caller = key.data
            for reply in caller.replies():
                self._check(reply)
                due = caller.due.popleft()
                self._samples.append((due, time.perf_counter() - due))
                served.append(caller)
        return served

    def _drain(self) -> None:
        deadline = time.perf_counter() + GIVE_UP_S
        while any(caller.due for caller in self._callers):
            self._answered(1)
            if time.perf_counter() > deadline:
                raise BadReply(f"requests were not answered within {GIVE_UP_S} s")
