"""What the replica reads of its log: offsets, epochs and snapshots. No IO: everything here is kept in memory."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ottla.raft.snapshots import FIRST_SNAPSHOT, SnapshotId


class LogView(Protocol):
    """The log of one replica."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the newest record, or of the newest snapshot if the log is empty; 0 if there is none."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest epoch that is not above `epoch`, and where it ends. An empty log gives (epoch of its start, start)."""
        ...

    def snapshot_ids(self) -> list[SnapshotId]:
        """The snapshots, oldest first. None ends before the log's start: `check_position` takes the first for the one there."""
        ...

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """The size in bytes; None if there is no such snapshot."""
        ...


class Diverging(NamedTuple):
    """The follower's log differs: it must truncate to this epoch's end."""

    epoch: int
    end_offset: int


def check_position(log: LogView, offset: int, epoch: int) -> Diverging | SnapshotId | None:
    """Whether a follower whose log ends at `offset` with `epoch` can continue: None if it can."""
    snapshots = log.snapshot_ids()
    latest = snapshots[-1] if snapshots else None
    if offset == 0 and latest is not None and latest != FIRST_SNAPSHOT:
        return latest
    if log.start_offset == 0 and offset == 0:
        return None
    earliest = snapshots[0] if snapshots else None
    if earliest is not None and (
        offset < log.start_offset or (offset == log.start_offset and epoch != earliest.epoch) or epoch < earliest.epoch
    ):
        return latest
    found_epoch, end_offset = log.end_offset_for_epoch(epoch)
    if found_epoch != epoch or end_offset < offset:
        return Diverging(found_epoch, end_offset)
    return None


def truncation_offset(log: LogView, diverging: Diverging) -> int:
    """Where a follower cuts its log, given the leader's newest epoch at or below its own, and that epoch's end."""
    if diverging.epoch == 0:
        return min(log.end_offset, diverging.end_offset)
    found_epoch, end_offset = log.end_offset_for_epoch(diverging.epoch)
    if found_epoch == diverging.epoch:
        return min(end_offset, diverging.end_offset)
    return end_offset


def covers(log: LogView, snapshot_id: SnapshotId) -> bool:
    """Whether the log has all records of a committed snapshot: those before its start are in a snapshot of its own.

    An end at or behind the snapshot's is not enough: the records there may be uncommitted ones of another epoch.
    """
    if snapshot_id.offset <= log.start_offset:
        return True
    found_epoch, end_offset = log.end_offset_for_epoch(snapshot_id.epoch)
    return found_epoch == snapshot_id.epoch and snapshot_id.offset <= end_offset
