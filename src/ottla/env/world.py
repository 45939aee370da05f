"""`World`: the clock, disk, network and other contracts that a node is constructed with, as one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.env.clock import Clock
from ottla.env.disk import Disk
from ottla.env.net import Network
from ottla.env.usage import ProcessUsage
from ottla.env.work import Helpers, InlineWorkers, Workers
from ottla.ids import Uuid

if TYPE_CHECKING:
    from ottla.env.key_sets import KeySets
    from ottla.env.loop_watch import LoopWatch
    from ottla.env.schema_registry import SchemaRegistries
    from ottla.env.system import SystemReader


class Randomness(Protocol):
    """Random ids and numbers. The simulator draws them from its seed."""

    def new_uuid(self) -> Uuid:
        """A random id that is not reserved and whose text does not begin with a dash."""
        ...

    def below(self, limit: int) -> int:
        """A random integer from 0 up to, but not including, `limit`."""
        ...


class Supervisor(Protocol):
    """The service manager that started this process, such as systemd, and what it is told (sd_notify(3))."""

    watchdog_s: float | None
    """It restarts a process that says nothing for this long; None: it does not watch."""

    def tell(self, message: str) -> bool:
        """Send lines of `NAME=value`. False: it was not taken, because others wait to be read; try it again later."""
        ...


class World(NamedTuple):
    """Everything outside the process. Timers and tasks are not in it: they belong to the running asyncio loop."""

    disk: Disk
    clock: Clock
    network: Network
    randomness: Randomness
    helpers: Helpers | None
    """Runs CPU-bound work; None: it runs in place."""
    usage: Callable[[], ProcessUsage] | None = None
    """Reads the process's resource usage; None if it is unknown."""
    loop_watch: LoopWatch | None = None
    """Watches the running loop; None: nothing does, as in the simulator, where no time passes during a turn."""
    compute: Workers = InlineWorkers()
    """Runs calls that compute for long without the interpreter lock, such as codecs; in place unless it is set."""
    key_sets: KeySets | None = None
    """Reads the keys that sign tokens for OAUTHBEARER; None: there is nowhere to read them from, as in the simulator."""
    system: SystemReader | None = None
    """Reads facts about the machine; None: it is not looked at, as in the simulator and for brokers in users' tests."""
    supervisor: Supervisor | None = None
    """The service manager; None: this process was started by something else."""
    schema_registries: SchemaRegistries | None = None
    """Asks schema registries; None: there is nobody to ask, as in the simulator."""
    return_memory: Callable[[], None] | None = None
    """Hands freed memory back to the system, in a worker thread; None: there is nothing to hand back, as in the simulator."""
