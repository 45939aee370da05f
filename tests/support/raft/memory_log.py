"""A replica's log as a list, with what of it is durable: a power loss keeps that, and perhaps more."""

from random import Random
from typing import NamedTuple

from ottla.raft.snapshots import SnapshotId
from ottla.records.control import ControlRecord


class Entry(NamedTuple):
    """One record: its epoch, and the payload that identifies it."""

    epoch: int
    payload: int | ControlRecord


class MemoryLog:
    """Implements `LogView`. `entries[0]` is at `start_offset`."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.durable: tuple[int, list[Entry]] = (0, [])
        self.snapshots: dict[SnapshotId, list[Entry]] = {}
        self.generation = 0

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        if self.entries:
            return self.entries[-1].epoch
        return max((each.epoch for each in self.snapshots), default=0)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        for at in range(len(self.entries) - 1, -1, -1):
            if self.entries[at].epoch <= epoch:
                return self.entries[at].epoch, self.start_offset + at + 1
        before = max((each for each in self.snapshots if each.offset <= self.start_offset), default=None)
        return (0 if before is None else before.epoch), self.start_offset

    def snapshot_ids(self) -> list[SnapshotId]:
        return sorted(self.snapshots)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        found = self.snapshots.get(snapshot_id)
        return None if found is None else len(found)

    def entry(self, offset: int) -> Entry:
        return self.entries[offset - self.start_offset]

    def read(self, offset: int, count_max: int) -> list[Entry]:
        at = offset - self.start_offset
        return self.entries[at : at + count_max]

    def truncate(self, offset: int) -> None:
        del self.entries[offset - self.start_offset :]
        self.generation += 1

    def sync_done(self, end_offset: int) -> None:
        self.durable = (self.start_offset, self.entries[: end_offset - self.start_offset])

    def start_at_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Replace the log by a fetched snapshot, durably."""
        self.entries, self.start_offset = [], snapshot_id.offset
        self.generation += 1
        self.durable = (self.start_offset, [])
        self._forget_before(snapshot_id)

    def trim(self, snapshot_id: SnapshotId) -> None:
        """Let the log start at a snapshot of its own."""
        del self.entries[: snapshot_id.offset - self.start_offset]
        start, kept = self.durable
        if start + len(kept) >= snapshot_id.offset:
            self.durable = (snapshot_id.offset, kept[snapshot_id.offset - start :])
        else:
            self.durable = (snapshot_id.offset, [])
        self.start_offset = snapshot_id.offset
        self._forget_before(snapshot_id)

    def _forget_before(self, snapshot_id: SnapshotId) -> None:
        for old in [each for each in self.snapshots if each < snapshot_id]:
            del self.snapshots[old]

    def crash(self, random: Random) -> None:
        """Lose what was not synced: some of it may have reached the device all the same, and a truncation may not have."""
        start, kept = self.durable
        assert start == self.start_offset
        if self.entries[: len(kept)] == kept:
            self.entries = self.entries[: random.randint(len(kept), len(self.entries))]
        else:
            self.entries = list(kept)
        self.generation += 1
        self.sync_done(self.end_offset)
