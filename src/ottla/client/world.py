"""`ClientWorld`: the clock, network, randomness and threads that a client is constructed with, as one value."""

from __future__ import annotations

from typing import NamedTuple

from ottla.env.clock import Clock
from ottla.env.net import Network
from ottla.env.threads import Threads
from ottla.env.tokens import TokenSources
from ottla.env.world import Randomness


class ClientWorld(NamedTuple):
    """Everything outside the process that a client uses. Timers and tasks belong to the running asyncio loop."""

    clock: Clock
    network: Network
    randomness: Randomness
    threads: Threads
    tokens: TokenSources | None = None
    """Bearer tokens over HTTP and from files; None: there are none, as in the simulator."""
