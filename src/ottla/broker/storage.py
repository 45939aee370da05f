"""`Storage`: the log directories of a node, locked first and loaded later, by a broker only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.log.directories.log_directories import LogDirectories
    from ottla.log.directories.startup import LockedDirectories


class Storage:
    """The directories of one node."""

    __slots__ = ("directories", "locked")

    def __init__(self, locked: LockedDirectories) -> None:
        self.locked = locked
        self.directories: LogDirectories | None = None

    async def close(self, broker_epoch: int, is_trusted: bool) -> None:
        """Close the logs with the mark of a clean shutdown; without it, if the node's state cannot be trusted."""
        if self.directories is not None and is_trusted:
            await self.directories.close(broker_epoch)
        else:
            self.locked.release()  # no mark of a clean shutdown: the next start recovers all logs
