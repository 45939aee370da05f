"""The world as one value: what a node is handed to live in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.env.clock import Clock
from ottla.env.disk import Disk
from ottla.env.net import Network
from ottla.env.usage import ProcessUsage
from ottla.env.work import Helpers
from ottla.ids import Uuid


class Randomness(Protocol):
    """Chance. The simulator's comes from its seed."""

    def new_uuid(self) -> Uuid:
        """A random id that is none of the reserved ones, and whose text does not begin with a dash."""
        ...

    def below(self, limit: int) -> int:
        """A whole number from 0 up to, not including, `limit`."""
        ...


class World(NamedTuple):
    """Timers and tasks are the running asyncio loop's: real, or the simulator's in virtual time."""

    disk: Disk
    clock: Clock
    network: Network
    randomness: Randomness
    helpers: Helpers | None
    """Where work goes that burns CPU; None: it is done in place."""
    usage: Callable[[], ProcessUsage] | None = None
    """What the process has used of the machine, if anybody can tell."""
