"""Settles the requests that wait for a partition's high watermark or for a flush, one round at a time.

An answer lets its connection go on, and the next request may append to the same partition and settle again: that round comes
after the one under way.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition


class AckWaiter(Protocol):
    """A request that waits for the high watermark or the disk."""

    def settle(self, partition: Partition) -> bool:
        """The partition has changed: True if the wait is over, with success or failure."""
        ...


class Settling:
    """Whether a partition's waits are being settled, or will be."""

    __slots__ = ("_is_again", "_is_due", "_is_running")

    def __init__(self) -> None:
        self._is_running = self._is_again = self._is_due = False

    def now(self, partition: Partition) -> None:
        """Settle the waits that have been reached, and those that can no longer be; later if a round is under way."""
        self._is_due = False
        self._is_again = True
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._is_again:
                self._is_again = False
                for wait in list(partition.ack_waits):
                    if wait.settle(partition):
                        partition.ack_waits.pop(wait, None)
        finally:
            self._is_running = False

    def soon(self, partition: Partition) -> None:
        """Settle on the loop's next turn."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.now, partition)
