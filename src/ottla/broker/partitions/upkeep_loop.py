"""What comes round with time, as tasks on the node's loop: retention, flushes, removals, checkpoints, compaction.

`ottla.log.upkeep` and the compactor know what is due; here they are asked, at the intervals of the settings, which may change
at any time. Nobody who appends or reads waits for any of it: what waits for the device does so in workers, what burns CPU
in helper processes.

A failure of a disk is what the log room makes of it (`LogDirectories.take_losses`); any other error ends the round it came up
in, is logged, and the next round comes all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.values import LONG_MAX
from ottla.env import Clock
from ottla.errors import LogDirectoryFailed
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories import LogDirectories
from ottla.log.upkeep import Upkeep

if TYPE_CHECKING:
    from ottla.broker.settings import BrokerSettings
    from ottla.ids import TopicPartition

logger = logging.getLogger("ottla.partitions")

FIRST_ROUND_MS = 30_000
"""How long a node is left in peace after its start before the first retention."""
PRODUCER_EXPIRY_CHECK_MS = 600_000
LOOK_INTERVAL_MIN_S = 0.05
LOOK_INTERVAL_MAX_S = 3600.0


class UpkeepLoop:
    """The background work of one node's logs, between `start` and `stop`."""

    def __init__(
        self, directories: LogDirectories, clock: Clock, settings: BrokerSettings, take_losses: Callable[[], None]
    ) -> None:
        self._directories = directories
        self._clock = clock
        self._settings = settings
        self._take_losses = take_losses
        self._upkeep = Upkeep(directories, clock, settings.current.log.producer_id_expiration_ms)
        self._tasks: list[asyncio.Task[None]] = []
        self._look = asyncio.Event()
        self._written: dict[str, dict[TopicPartition, int]] = {}

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        settings = self._settings

        def log() -> BrokerLogConfig:
            return settings.current.log

        rounds = [
            self._every(lambda: log().log_retention_check_interval_ms, self._retain, FIRST_ROUND_MS),
            self._every(lambda: PRODUCER_EXPIRY_CHECK_MS, self._expire_producers),
            self._every(lambda: log().log_flush_offset_checkpoint_interval_ms, self._write_recovery_points),
            self._every(lambda: log().log_flush_start_offset_checkpoint_interval_ms, self._write_log_starts),
            self._every(lambda: settings.current.replica_high_watermark_checkpoint_interval_ms, self._write_high_watermarks),
            self._do_what_is_due(),
        ]
        if self._directories.compactor is not None and log().log_cleaner_enable:
            compactor = self._directories.compactor
            rounds += [self._compact(compactor) for _ in range(log().log_cleaner_threads)]
        self._tasks = [loop.create_task(each) for each in rounds]

    async def stop(self) -> None:
        """End all of it; a swap or a write that is under way is waited for."""
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        self._tasks = []

    def look(self) -> None:
        """Something may be due: a segment was rolled, or a partition deleted."""
        self._look.set()

    # Rounds

    async def _every(
        self, interval_ms: Callable[[], int], work: Callable[[], Awaitable[None]], first_ms: int | None = None
    ) -> None:
        await asyncio.sleep(_seconds(interval_ms() if first_ms is None else min(first_ms, interval_ms())))
        while True:
            await self._attempt(work)
            await asyncio.sleep(_seconds(interval_ms()))

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except LogDirectoryFailed as failed:
            self._directories.note_loss(failed)
        except Exception:
            logger.exception("upkeep of the logs went wrong; it is tried again at its next turn")
        self._take_losses()

    async def _retain(self) -> None:
        if await self._upkeep.run_retention():
            self.look()

    async def _expire_producers(self) -> None:
        self._upkeep.remove_expired_producers()

    # What is due at a certain time

    async def _do_what_is_due(self) -> None:
        while True:
            await self._attempt(self._flush_and_delete)
            try:
                await asyncio.wait_for(self._look.wait(), self._seconds_to_next())
            except TimeoutError:
                pass
            self._look.clear()

    async def _flush_and_delete(self) -> None:
        await self._upkeep.flush_due()
        await self._upkeep.delete_due()

    def _seconds_to_next(self) -> float:
        """Until the next deadline that is known; and as often as flush.ms of any log, since its next record sets a new one."""
        logs = self._directories.logs.values()
        flush_ms = min((log.config.flush_ms for log in logs), default=LONG_MAX)
        flush_ms = min(flush_ms, self._settings.current.log.log_flush_scheduler_interval_ms)
        wait_s = _seconds(flush_ms)
        deadline_s = self._upkeep.next_deadline_s
        if deadline_s is not None:
            wait_s = min(wait_s, deadline_s - self._clock.monotonic_s())
        return max(wait_s, LOOK_INTERVAL_MIN_S)

    # Checkpoints: written where something has changed since

    async def _write_recovery_points(self) -> None:
        await self._write(
            "recovery points",
            lambda: {p: log.recovery_point for p, log in self._directories.logs.items()},
            self._upkeep.write_recovery_points,
        )

    async def _write_log_starts(self) -> None:
        await self._write(
            "log starts",
            lambda: {p: log.log_start_offset for p, log in self._directories.logs.items()},
            self._upkeep.write_log_starts,
        )

    async def _write_high_watermarks(self) -> None:
        await self._write(
            "high watermarks",
            lambda: {p: log.high_watermark for p, log in self._directories.logs.items()},
            self._upkeep.write_high_watermarks,
        )

    async def _write(
        self, what: str, offsets: Callable[[], dict[TopicPartition, int]], write: Callable[[], Awaitable[None]]
    ) -> None:
        now = offsets()
        if now != self._written.get(what):
            await write()
            self._written[what] = now

    # Compaction

    async def _compact(self, compactor: Compactor) -> None:
        while True:
            await self._attempt(lambda: self._compact_all(compactor))
            await asyncio.sleep(_seconds(self._settings.current.log.log_cleaner_backoff_ms))

    async def _compact_all(self, compactor: Compactor) -> None:
        """One log after the other, as long as one is due."""
        while await compactor.run_once(self._directories.logs) is not None:
            self.look()  # the files of the old segments go after a while


def _seconds(interval_ms: int) -> float:
    return min(interval_ms / 1000, LOOK_INTERVAL_MAX_S)
