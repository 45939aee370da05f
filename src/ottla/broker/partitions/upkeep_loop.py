"""Background tasks for the logs of a node: retention, flushes, file deletions, checkpoints, compaction.

`log/directories/upkeep.py` and the compactor know what is due. This file calls them at the intervals of the settings, which may
change at any time. Appends and reads never wait for this work: waits for the device run in worker threads, CPU-heavy work in
helper processes.

A failed disk takes its directory offline (`LogDirectories.take_losses`). A broken invariant stops the node. Any other error is
logged and ends that round; the next round runs at its time.

`stop` waits for every step under way: a write in a worker thread runs on even if its task is cancelled, and must not run while
the logs are being closed. Only compaction, which may take minutes, is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from ottla.broker.node_settings import cleaner_settings
from ottla.config.broker import BrokerConfig
from ottla.config.values import LONG_MAX
from ottla.env import Clock
from ottla.errors import BrokenInvariant, LogDirectoryFailed
from ottla.ids import TopicPartition
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.creation import NewPartition
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.upkeep import Upkeep
from ottla.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from ottla.broker.settings import BrokerSettings

logger = logging.getLogger("ottla.partitions")

ROOM_CHECK_S = 5.0
"""How often the creation of partitions that wait for file descriptors is tried."""
WAIT_MIN_S = 0.02
WAIT_MAX_S = 3600.0


class UpkeepOwner(Protocol):
    """The object whose logs are looked after (`Partitions`)."""

    directories: LogDirectories
    settings: BrokerSettings
    waiting_for_room: dict[TopicPartition, NewPartition]

    async def make_waiting(self) -> None:
        """Try to create the partitions in `waiting_for_room`."""
        ...

    def take_losses(self) -> None:
        """Act on directories that have failed, if any."""
        ...

    def broken(self, failure: BaseException) -> None:
        """An invariant is broken: stop the node."""
        ...


class UpkeepLoop:
    """The background work of one node's logs, between `start` and `stop`."""

    def __init__(self, owner: UpkeepOwner, clock: Clock) -> None:
        self._owner = owner
        self._directories = owner.directories
        self._settings = owner.settings
        self._clock = clock
        self._upkeep = Upkeep(self._directories, clock, self._settings.current.log.producer_id_expiration_ms)
        self._rounds: list[asyncio.Task[None]] = []
        self._compactions: list[asyncio.Task[None]] = []
        self._due = asyncio.Event()
        self._stopping = asyncio.Event()
        self._written: dict[str, dict[TopicPartition, int]] = {}

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        rounds = [
            self._every(lambda now: now.log.log_retention_check_interval_ms, self._retain),
            self._every(lambda now: now.producer_id_expiration_check_interval_ms, self._expire_producers),
            self._every(lambda now: now.log.log_flush_offset_checkpoint_interval_ms, self._write_recovery_points),
            self._every(lambda now: now.log.log_flush_start_offset_checkpoint_interval_ms, self._write_log_starts),
            self._every(lambda now: now.replica_high_watermark_checkpoint_interval_ms, self._write_high_watermarks),
            self._do_what_is_due(),
        ]
        self._rounds = [loop.create_task(each) for each in rounds]
        compactor = self._directories.compactor
        if compactor is not None and self._settings.current.log.log_cleaner_enable:
            self._compactions = [loop.create_task(self._compact(compactor, 0))]

    async def stop(self) -> None:
        """Start no further step, and wait for those under way."""
        self._stopping.set()
        self._due.set()
        for task in self._compactions:
            task.cancel()
        for result in await asyncio.gather(*self._rounds, *self._compactions, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        self._rounds, self._compactions = [], []

    def look(self) -> None:
        """Something may be due: a segment was rolled, or a partition deleted."""
        self._due.set()

    # Rounds

    async def _every(self, interval_ms: Callable[[BrokerConfig], int], work: Callable[[], Awaitable[None]]) -> None:
        now = self._settings.current
        wait_ms = min(now.log_initial_task_delay_ms, interval_ms(now))
        while not await self._is_stopping_within(wait_ms):
            await self._attempt(work)
            wait_ms = interval_ms(self._settings.current)

    async def _is_stopping_within(self, wait_ms: int) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), _seconds(wait_ms))
        except TimeoutError:
            return False
        return True

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except LogDirectoryFailed as failed:
            self._directories.note_loss(failed)
        except BrokenInvariant as failure:
            self._owner.broken(failure)
        except Exception:
            logger.exception("upkeep of the logs failed; it is tried again at its next interval")
        self._owner.take_losses()

    async def _retain(self) -> None:
        if await self._upkeep.run_retention():
            self.look()  # sets the timer for deleting the files

    async def _expire_producers(self) -> None:
        expiration_ms = self._settings.current.log.producer_id_expiration_ms
        Upkeep(self._directories, self._clock, expiration_ms).remove_expired_producers()

    # Deadlines

    async def _do_what_is_due(self) -> None:
        while not self._stopping.is_set():
            self._due.clear()
            await self._attempt(self._flush_and_delete)
            try:
                await asyncio.wait_for(self._due.wait(), self._seconds_to_next())
            except TimeoutError:
                pass

    async def _flush_and_delete(self) -> None:
        await self._upkeep.flush_due()
        await self._upkeep.delete_due()
        if self._owner.waiting_for_room:
            await self._owner.make_waiting()

    def _seconds_to_next(self) -> float:
        """Time to the next known deadline, and at most the lowest flush.ms: a new record may set a deadline at any time."""
        flush_ms = min((log.config.flush_ms for log in self._directories.logs.values()), default=LONG_MAX)
        wait_s = _seconds(min(flush_ms, self._settings.current.log.log_flush_scheduler_interval_ms))
        if self._owner.waiting_for_room:
            wait_s = min(wait_s, ROOM_CHECK_S)
        deadline_s = self._upkeep.next_deadline_s
        if deadline_s is not None:
            wait_s = min(wait_s, deadline_s - self._clock.monotonic_s())
        return max(wait_s, WAIT_MIN_S)

    # Checkpoints, written only if an offset has changed

    async def _write_recovery_points(self) -> None:
        await self._write("recovery points", lambda log: log.recovery_point, self._upkeep.write_recovery_points)

    async def _write_log_starts(self) -> None:
        await self._write("log starts", lambda log: log.log_start_offset, self._upkeep.write_log_starts)

    async def _write_high_watermarks(self) -> None:
        await self._write("high watermarks", lambda log: log.high_watermark, self._upkeep.write_high_watermarks)

    async def _write(self, what: str, offset_of: Callable[[PartitionLog], int], write: Callable[[], Awaitable[None]]) -> None:
        now = {partition: offset_of(log) for partition, log in self._directories.logs.items()}
        if now != self._written.get(what):
            await write()
            self._written[what] = now

    # Compaction

    async def _compact(self, compactor: Compactor, number: int) -> None:
        """One of log.cleaner.threads tasks. Number 0 starts the others; if the setting is lowered, surplus tasks idle."""
        while not self._stopping.is_set():
            wanted = self._settings.current.log.log_cleaner_threads
            while number == 0 and len(self._compactions) < wanted:
                another = self._compact(compactor, len(self._compactions))
                self._compactions.append(asyncio.get_running_loop().create_task(another))
            if number < wanted:
                await self._attempt(lambda: self._compact_all(compactor))
            await self._is_stopping_within(self._settings.current.log.log_cleaner_backoff_ms)

    async def _compact_all(self, compactor: Compactor) -> None:
        """Compact one log after the other while one is due, each with the current settings."""
        while True:
            compactor.settings = cleaner_settings(self._settings.current.log)
            if await compactor.run_once(self._directories.logs) is None:
                return
            self.look()  # sets the timer for deleting the old segments' files


def _seconds(interval_ms: int) -> float:
    return min(interval_ms / 1000, WAIT_MAX_S)
