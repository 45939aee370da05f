"""Builds the real `World`: one per process that runs nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.env.key_sets import KeySetAddress
from ottla.env.real.clock import RealClock
from ottla.env.real.disk import RealDisk
from ottla.env.real.helpers import ProcessHelpers
from ottla.env.real.loop_watch import RealLoopWatch
from ottla.env.real.net import RealNetwork
from ottla.env.real.own_process import process_usage
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.workers import ThreadWorkers, compute_workers, return_freed_memory
from ottla.env.schema_registry import RegistryAddress
from ottla.env.world import World

if TYPE_CHECKING:
    from ottla.env.system import SystemFacts, Wanted


class _KeySets:
    """`RealKeySets`, imported when the first key set is read: few nodes need HTTP."""

    def read(self, address: KeySetAddress) -> bytes:
        from ottla.env.real.key_sets import RealKeySets

        return RealKeySets().read(address)


class LazySchemaRegistries:
    """`RealSchemaRegistries`, imported when the first registry is asked: few nodes check schema ids."""

    def get(self, address: RegistryAddress, path: str) -> bytes | None:
        from ottla.env.real.schema_registry import RealSchemaRegistries

        return RealSchemaRegistries().get(address, path)


class _System:
    """`RealSystem`, imported when the machine is looked at, in the thread that does it."""

    def read(self, wanted: Wanted) -> SystemFacts:
        from ottla.env.real.system import RealSystem

        return RealSystem().read(wanted)


@contextmanager
def real_world() -> Iterator[World]:
    """A `World` whose threads end with the block."""
    workers, compute, watch = ThreadWorkers(), compute_workers(), RealLoopWatch()
    try:
        yield World(
            RealDisk(workers),
            RealClock(),
            RealNetwork(),
            RealRandomness(),
            ProcessHelpers(),
            process_usage,
            watch,
            compute,
            _KeySets(),
            _System(),
            return_memory=return_freed_memory,
            schema_registries=LazySchemaRegistries(),
        )
    finally:
        watch.stop()
        compute.close()
        workers.close()
