"""Reads records that are not in the page cache in a worker thread, so that sending them does not block the loop.

`sendfile` of a range that the kernel has to read from the device first would block the whole node. Records appended lately are
in the page cache; for others `FileRange.is_resident` tells (a few microseconds). At most `WARM_AT_ONCE_MAX` ranges are read at
a time, because the same workers flush logs.
"""

from __future__ import annotations

import asyncio

from ottla.env import Disk, FileRange
from ottla.log.partition_log import PartitionLog
from ottla.log.read import ReadInfo

NEAR_TAIL_BYTES = 4 << 20
"""Records this close to the log's end were written lately: they are taken to be in the page cache without asking."""

WARM_AT_ONCE_MAX = 2


class ColdReads:
    """Finds ranges that are not in the page cache, and reads them."""

    __slots__ = ("_disk", "_turns")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._turns = asyncio.Semaphore(WARM_AT_ONCE_MAX)

    def is_cold(self, log: PartitionLog, info: ReadInfo) -> bool:
        """Whether the records of a read have to be warmed before they are sent."""
        if info.records is None:
            return False
        active = log.segments.active
        if info.segment_base_offset == active.base_offset and active.file.size - info.position <= NEAR_TAIL_BYTES:
            return False
        return not info.records.is_resident()

    async def warm(self, records: FileRange) -> None:
        """Read the range into the page cache. Raises `OSError` if the device cannot read it."""
        async with self._turns:
            await self._disk.warm(records)
