"""The trace of a run: its events in order, as lines of text and as one hash.

A line has four columns: virtual time in seconds, actor, event and details (docs/simulator.md explains them). Two runs with the
same hash over all lines are the same. So a line must hold nothing that differs between processes, such as object ids or the
wall clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from ottla.sim.loop import VirtualLoop


class Trace:
    """The events of one run."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._hash = hashlib.sha256()
        self.lines: list[str] = []

    def note(self, who: str, what: str, detail: str = "") -> None:
        line = f"{self._loop.true_time():>12.6f}  {who:<8} {what:<12} {detail}".rstrip()
        self.lines.append(line)
        self._hash.update(line.encode())
        self._hash.update(b"\n")

    def digest(self) -> str:
        """The hash of all lines so far."""
        return self._hash.hexdigest()[:16]


ENDS = ("kill", "power loss", "crash", "gives up", "lost")
STATES = {"start": "..", "up": "up", "active": "C", "pause": "zz", "resume": "up", **dict.fromkeys(ENDS, "--")}
OTHERS = ("network", "troubles", "checkers", "run")
_TIME_CHARS = 12
_ACTOR_CHARS = 8
_EVENT_CHARS = 12


def timeline(lines: Iterable[str], nodes: Sequence[str]) -> list[str]:
    """A run as a table that a person can read: what happened to the nodes and the network, and the state of every node beside
    it.

            time  n1  n2  n3
        2.104331  C   up  up  n1 pause
        2.104331  zz  up  up  n2 leads epoch 2 from 17

    `..` starts, `up` runs, `C` has the active controller, `zz` is paused, `--` is down.
    """
    states = dict.fromkeys(nodes, "--")
    rows = [f"{'time':>{_TIME_CHARS}}  " + "  ".join(f"{name:<2}" for name in nodes)]
    for line in lines:
        time, actor, event, detail = _columns(line)
        if actor not in states and actor not in OTHERS:
            continue
        state = STATES.get(event)
        if actor in states and state is not None:
            if state == "C":
                states = {name: "up" if known == "C" else known for name, known in states.items()}
            states[actor] = state
        rows.append(
            f"{time}  " + "  ".join(f"{state:<2}" for state in states.values()) + f"  {actor} {event} {detail}".rstrip()
        )
    return rows


def _columns(line: str) -> tuple[str, str, str, str]:
    """Time, actor, event and details of a line (`trace.py` writes them)."""
    rest = line[_TIME_CHARS + 2 :]
    actor = rest[: max(_ACTOR_CHARS, rest.find(" "))].strip()
    rest = rest[max(_ACTOR_CHARS, len(actor)) + 1 :]
    event = rest[:_EVENT_CHARS].strip()
    return line[:_TIME_CHARS], actor, event, rest[_EVENT_CHARS + 1 :]
