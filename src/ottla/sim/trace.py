"""The trace of a run: its events in order, as lines of text and as one hash.

A line has four columns: virtual time in seconds, actor, event and details (docs/simulator.md explains them). Two runs with the
same hash over all lines are the same. So a line must hold nothing that differs between processes, such as object ids or the
wall clock.
"""

import hashlib

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
