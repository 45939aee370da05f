"""What comes round with time, as tasks on the node's loop: retention, flushes, removals, checkpoints, compaction.

`log/directories/upkeep.py` and the compactor know what is due; here they are asked, at the intervals of the settings, which
may change at any time. Appends and reads never wait for it: work that waits for the device runs in worker threads, work that
burns CPU in helper processes.

A failure of a disk is what the log room makes of it (`LogDirectories.take_losses`), a broken invariant stops the node; any
other error ends the round it came up in, is logged, and the next round comes all the same.

Stopping lets every step that is under way come to its end: a write in a worker thread goes on even if nobody waits for it any
more, and must not meet the one that closes the logs. Only compaction, which may take minutes, is given up.
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
"""How often partitions that wait for room are tried."""
WAIT_MIN_S = 0.02
WAIT_MAX_S = 3600.0


class UpkeepOwner(Protocol):
    """Whose logs they are."""

    directories: LogDirectories
    settings: BrokerSettings
    waiting_for_room: dict[TopicPartition, NewPartition]

    async def make_waiting(self) -> None:
        """There may be room for those that wait for it."""
        ...

    def take_losses(self) -> None:
        """A disk may have failed."""
        ...

    def broken(self, failure: BaseException) -> None:
        """Something that cannot happen has happened."""
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
        """Begin nothing more, and wait for what is under way."""
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
            logger.exception("upkeep of the logs went wrong; it is tried again at its next turn")
        self._owner.take_losses()

    async def _retain(self) -> None:
        if await self._upkeep.run_retention():
            self.look()  # the files go after a while

    async def _expire_producers(self) -> None:
        expiration_ms = self._settings.current.log.producer_id_expiration_ms
        Upkeep(self._directories, self._clock, expiration_ms).remove_expired_producers()

    # What is due at a certain time

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
        """Until the next deadline that is known; and as often as flush.ms of any log, since its next record sets a new one."""
        flush_ms = min((log.config.flush_ms for log in self._directories.logs.values()), default=LONG_MAX)
        wait_s = _seconds(min(flush_ms, self._settings.current.log.log_flush_scheduler_interval_ms))
        if self._owner.waiting_for_room:
            wait_s = min(wait_s, ROOM_CHECK_S)
        deadline_s = self._upkeep.next_deadline_s
        if deadline_s is not None:
            wait_s = min(wait_s, deadline_s - self._clock.monotonic_s())
        return max(wait_s, WAIT_MIN_S)

    # Checkpoints: written where something has changed since

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
        """One of as many as log.cleaner.threads says: the first begins the others, and those too many have nothing to do."""
        while not self._stopping.is_set():
            wanted = self._settings.current.log.log_cleaner_threads
            while number == 0 and len(self._compactions) < wanted:
                another = self._compact(compactor, len(self._compactions))
                self._compactions.append(asyncio.get_running_loop().create_task(another))
            if number < wanted:
                await self._attempt(lambda: self._compact_all(compactor))
            await self._is_stopping_within(self._settings.current.log.log_cleaner_backoff_ms)

    async def _compact_all(self, compactor: Compactor) -> None:
        """One log after the other, as long as one is due; each with the settings as they are then."""
        while True:
            compactor.settings = cleaner_settings(self._settings.current.log)
            if await compactor.run_once(self._directories.logs) is None:
                return
            self.look()  # the files of the old segments go after a while


def _seconds(interval_ms: int) -> float:
    return min(interval_ms / 1000, WAIT_MAX_S)
