"""The world of a client that is given none: the operating system's clock, sockets, randomness and threads.

This is the only file of the clients that imports `env/real`; the import rules name it as the exception.
"""

from ottla.client.world import ClientWorld
from ottla.env.real.clock import RealClock
from ottla.env.real.net import RealNetwork
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.threads import RealThreads


def real_client_world() -> ClientWorld:
    """A world over the operating system."""
    return ClientWorld(RealClock(), RealNetwork(), RealRandomness(), RealThreads())
