"""The contracts of `env`, implemented with the operating system. No other package on floors 0–3 touches it.

The names are loaded when they are first used: a client needs no disk and no helper processes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.env.real.clock import RealClock
    from ottla.env.real.disk import RealDisk
    from ottla.env.real.helpers import ProcessHelpers
    from ottla.env.real.net import RealNetwork
    from ottla.env.real.randomness import RealRandomness
    from ottla.env.real.workers import ThreadWorkers

__all__ = ["ProcessHelpers", "RealClock", "RealDisk", "RealNetwork", "RealRandomness", "ThreadWorkers"]

_HOMES = {
    "ProcessHelpers": "helpers",
    "RealClock": "clock",
    "RealDisk": "disk",
    "RealNetwork": "net",
    "RealRandomness": "randomness",
    "ThreadWorkers": "workers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ottla.env.real' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"ottla.env.real.{_HOMES[name]}"), name)
    return value
