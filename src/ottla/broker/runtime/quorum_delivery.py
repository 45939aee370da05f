"""Passes committed metadata on to the listeners of a replica, in the order of the log, one call at a time.

Owns the batches that were appended and not passed on yet, and the offset up to which everything was. Batches from before the
start are read from the log. A slow listener delays the calls after it, and no commit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from ottla.broker.runtime.metadata_log import MetadataBatch, MetadataLog
from ottla.raft.snapshots import SnapshotContent, SnapshotId

CommitListener = Callable[[Sequence[MetadataBatch]], Awaitable[None]]
SnapshotListener = Callable[[SnapshotId, SnapshotContent], Awaitable[None]]

_BATCHES_MAX = 1000
"""The most batches that are read from the log for one call."""


class Delivery:
    """What was committed and is still to be passed on."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        self._appended: deque[MetadataBatch] = deque()
        self._is_due = asyncio.Event()
        self._snapshot: SnapshotId | None = None
        self._high_watermark = -1
        self.passed_on = 0
        """The offset up to which everything was passed on."""

    def appended(self, batch: MetadataBatch) -> None:
        self._appended.append(batch)

    def truncated(self, end_offset: int) -> None:
        while self._appended and self._appended[-1].last_offset >= end_offset:
            self._appended.pop()

    def committed(self, high_watermark: int) -> None:
        """Everything below `high_watermark` may be passed on."""
        self._high_watermark = high_watermark
        self._is_due.set()

    def snapshot_loaded(self, snapshot_id: SnapshotId) -> None:
        """A snapshot takes the place of all that was appended before."""
        self._appended.clear()
        self._snapshot = snapshot_id
        self._is_due.set()

    async def run(self, committed: CommitListener, loaded_snapshot: SnapshotListener | None) -> None:
        """Call the listeners as long as the task lives; raises what they raise."""
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            if self._snapshot is not None:
                snapshot_id, self._snapshot = self._snapshot, None
                self.passed_on = snapshot_id.offset
                if loaded_snapshot is not None:
                    await loaded_snapshot(snapshot_id, self._log.snapshots.read(snapshot_id))
            if self._snapshot is None and (batches := self._take()):
                await committed(batches)

    def _take(self) -> list[MetadataBatch]:
        """The next batches to pass on. More may be due after them: then this is called again."""
        appended, high_watermark = self._appended, self._high_watermark
        while appended and appended[0].last_offset < self.passed_on:
            appended.popleft()
        batches: list[MetadataBatch] = []
        if not appended or appended[0].base_offset > self.passed_on:
            if self.passed_on < high_watermark:
                found = islice(self._log.batches(self.passed_on), _BATCHES_MAX)
                batches = [batch for batch in found if batch.last_offset < high_watermark]
                if batches:
                    self._is_due.set()
        else:
            while appended and appended[0].last_offset < high_watermark:
                batches.append(appended.popleft())
        if batches:
            self.passed_on = batches[-1].last_offset + 1
        return batches
