"""DeleteRecords requests parked until all replicas that are up begin where they were told to. One event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition


class LowWatermarkWait:
    """Waits until the low watermark of `partition` is at `offset`. `done` gets an error code."""

    __slots__ = ("_offset", "_partition", "done")

    def __init__(self, partition: Partition, offset: int) -> None:
        self._partition = partition
        self._offset = offset
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        partition.ack_waits[self] = None

    def settle(self, partition: Partition) -> bool:
        """Called by the partition when something has changed: True if the wait is over."""
        if self.done.done():
            return True
        if not partition.is_leading:
            self.done.set_result(partition.refusal().code)
        elif partition.low_watermark >= self._offset:
            self.done.set_result(ErrorCode.NONE)
        return self.done.done()

    def leave(self) -> None:
        self._partition.ack_waits.pop(self, None)


async def reach(partition: Partition, offset: int, deadline_s: float) -> int:
    """Wait until the low watermark is at `offset`; returns NONE, REQUEST_TIMED_OUT or why this node leads no more."""
    wait = LowWatermarkWait(partition, offset)
    try:
        if wait.settle(partition):
            return wait.done.result()
        async with asyncio.timeout_at(deadline_s):
            return await wait.done
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT
    finally:
        wait.leave()
