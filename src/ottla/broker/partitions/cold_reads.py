"""Records that are not in memory: read by a worker before they are sent, so that the loop does not wait for the device.

`sendfile` of a range whose bytes the kernel has to fetch first would stop the whole node for as long as that takes. What was
appended lately is in memory; of anything else the range is asked (`FileRange.is_resident`, a few microseconds). Only a few
ranges are warmed at a time: the same workers flush logs.
"""

from __future__ import annotations

import asyncio

from ottla.env import Disk, FileRange
from ottla.log.partition_log import PartitionLog
from ottla.log.read import ReadInfo

NEAR_TAIL_BYTES = 4 << 20
"""So close to its end a log is not asked: it was just written."""

WARM_AT_ONCE_MAX = 2


class ColdReads:
    """Tells cold ranges, and warms them."""

    __slots__ = ("_disk", "_turns")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._turns = asyncio.Semaphore(WARM_AT_ONCE_MAX)

    def is_cold(self, log: PartitionLog, info: ReadInfo) -> bool:
        """Whether the records that were found have to be warmed before they are sent."""
        if info.records is None:
            return False
        active = log.segments.active
        if info.segment_base_offset == active.base_offset and active.file.size - info.position <= NEAR_TAIL_BYTES:
            return False
        return not info.records.is_resident()

    async def warm(self, records: FileRange) -> None:
        """Wait until the range is in memory. `OSError` if the device cannot read it."""
        async with self._turns:
            await self._disk.warm(records)
