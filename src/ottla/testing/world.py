"""The real world of a test broker: it can be killed within its process, and does not sync temporary data.

Without syncs a killed process still loses nothing that it has written; only a power loss does, and temporary data need not
survive that. Waiting for syncs would take most of the time of a start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

from ottla.env import DirectoryLock, World
from ottla.env.disk import Buffer, File
from ottla.env.real.clock import RealClock
from ottla.env.real.disk import RealDisk
from ottla.env.real.file import RealFile
from ottla.env.real.helpers import ProcessHelpers
from ottla.env.real.loop_watch import RealLoopWatch
from ottla.env.real.net import RealNetwork
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.workers import ThreadWorkers, compute_workers


class LockedDisk(RealDisk):
    """A disk that remembers its directory locks, so that they can be released when the node is killed."""

    def __init__(self, workers: ThreadWorkers) -> None:
        super().__init__(workers)
        self._locks: list[DirectoryLock] = []

    def lock_directory(self, path: str) -> DirectoryLock:
        lock = super().lock_directory(path)
        self._locks.append(lock)
        return lock

    def release(self) -> None:
        """Release every lock, as the end of a process would. Releasing twice is harmless."""
        for lock in self._locks:
            lock.release()


class UnsyncedFile(RealFile):
    __slots__ = ()

    async def sync(self) -> None:
        self._held()


class UnsyncedDisk(LockedDisk):
    """A disk that never syncs: its data may not survive a power loss."""

    file_class: ClassVar[type[RealFile]] = UnsyncedFile

    async def replace_files(self, files: Mapping[str, Buffer]) -> None:
        for path, data in files.items():
            draft = f"{path}.tmp"
            with open(draft, "wb", buffering=0) as file:
                file.write(data)
            os.replace(draft, path)

    async def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    async def sync_directory(self, path: str) -> None:
        os.stat(path)

    async def sync_all(self, files: Sequence[File], folders: Sequence[str]) -> None:
        for file in files:
            await file.sync()
        for folder in folders:
            await self.sync_directory(folder)


@contextmanager
def killable_world(*, is_synced: bool) -> Iterator[World]:
    """A world whose threads and locks end with the block, also after an exception."""
    workers, compute, watch = ThreadWorkers(), compute_workers(), RealLoopWatch()
    disk = LockedDisk(workers) if is_synced else UnsyncedDisk(workers)
    try:
        yield World(disk, RealClock(), RealNetwork(), RealRandomness(), ProcessHelpers(), None, watch, compute)
    finally:
        watch.stop()
        compute.close()
        workers.close()
        disk.release()
