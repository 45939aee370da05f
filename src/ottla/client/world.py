"""`ClientWorld`: the clock, network, randomness and threads that a client is constructed with, as one value."""

from __future__ import annotations

from typing import NamedTuple

from ottla.env.clock import Clock
from ottla.env.net import Network
from ottla.env.real.clock import RealClock
from ottla.env.real.net import RealNetwork
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.threads import RealThreads
from ottla.env.threads import Threads
from ottla.env.tokens import TokenEndpoint, TokenSources
from ottla.env.world import Randomness


class ClientWorld(NamedTuple):
    """Everything outside the process that a client uses. Timers and tasks belong to the running asyncio loop."""

    clock: Clock
    network: Network
    randomness: Randomness
    threads: Threads
    tokens: TokenSources | None = None
    """Bearer tokens over HTTP and from files; None: there are none, as in the simulator."""


# The world of a client that is given none: the operating system's clock, sockets, randomness and threads.
#
# This is the only file of the clients that imports `env/real`; the import rules name it as the exception.


def real_client_world() -> ClientWorld:
    """A world over the operating system."""
    return ClientWorld(RealClock(), RealNetwork(), RealRandomness(), RealThreads(), _LateTokens())


class _LateTokens:
    """`TokenSources` that are imported when the first token is fetched: few clients need HTTP."""

    def from_endpoint(self, endpoint: TokenEndpoint) -> tuple[str, float | None]:
        from ottla.env.real.tokens import RealTokenSources

        return RealTokenSources().from_endpoint(endpoint)

    def from_file(self, path: str) -> str:
        from ottla.env.real.tokens import RealTokenSources

        return RealTokenSources().from_file(path)
