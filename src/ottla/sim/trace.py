"""What happened in a run, in order, as text and as one number.

A line has four columns: virtual time in seconds, who, what, and the rest in words (docs/simulator.md explains them). The number
is a hash over all lines: two runs with the same hash went the same way. Nothing that differs between processes may be noted:
no identities of objects, no wall clock.
"""

import asyncio
import hashlib


class Trace:
    """The story of one run."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._hash = hashlib.sha256()
        self.lines: list[str] = []

    def note(self, who: str, what: str, detail: str = "") -> None:
        line = f"{self._loop.time():>12.6f}  {who:<8} {what:<12} {detail}".rstrip()
        self.lines.append(line)
        self._hash.update(line.encode())
        self._hash.update(b"\n")

    def digest(self) -> str:
        """The hash of all lines so far."""
        return self._hash.hexdigest()[:16]
