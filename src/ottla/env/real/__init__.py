"""The world as it is: the one room of floors 0–3 that touches the operating system."""

from ottla.env.real.clock import RealClock
from ottla.env.real.disk import RealDisk
from ottla.env.real.helpers import ProcessHelpers
from ottla.env.real.net import RealNetwork
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.workers import ThreadWorkers

__all__ = ["ProcessHelpers", "RealClock", "RealDisk", "RealNetwork", "RealRandomness", "ThreadWorkers"]
