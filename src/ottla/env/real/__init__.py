"""The contracts of `env`, implemented with the operating system. No other package on floors 0–3 touches it."""

from ottla.env.real.clock import RealClock
from ottla.env.real.disk import RealDisk
from ottla.env.real.helpers import ProcessHelpers
from ottla.env.real.net import RealNetwork
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.workers import ThreadWorkers

__all__ = ["ProcessHelpers", "RealClock", "RealDisk", "RealNetwork", "RealRandomness", "ThreadWorkers"]
