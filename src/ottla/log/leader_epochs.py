"""Which leader epoch wrote which offsets of a partition: an ordered list of (epoch, start offset), kept in a checkpoint.

Invariant: epochs and start offsets both rise strictly. A new entry removes the entries that would break this.

Loop rule: changes are made in memory, on the event loop; `flush` writes them to the checkpoint. Apache writes the file before
every append that begins an epoch. Here the append does not wait: the checkpoint must have every epoch that begins below the
log's recovery point, and above it recovery reads the epochs from the batches. So a log's flush awaits `flush` before it moves
the recovery point. Truncation and retention may leave too many entries in the file; loading removes them.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right

from ottla.env import Disk
from ottla.errors import BrokenInvariant
from ottla.log.directories.checkpoint import format_epochs, parse_epochs
from ottla.log.fast_path.kernels import EpochsTail
from ottla.log.names import LEADER_EPOCH_CHECKPOINT

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs(EpochsTail):
    """The leader epochs of one partition."""

    __slots__ = ("_changes", "_changes_flushed", "_disk", "_flushed", "_writing", "path")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self.path = f"{folder}/{LEADER_EPOCH_CHECKPOINT}"
        self._epochs = []
        self._starts = []
        self._changes = 0
        self._changes_flushed = 0
        self._flushed: list[tuple[int, int]] = []  # the entries in the file
        self._writing = asyncio.Lock()

    @classmethod
    def load(cls, disk: Disk, folder: str) -> LeaderEpochs:
        """The epochs in `folder`'s checkpoint, none if there is no file; `CorruptFile` if it is damaged."""
        epochs = cls(disk, folder)
        try:
            data = disk.read_file(epochs.path)
        except FileNotFoundError:
            return epochs
        for epoch, start_offset in parse_epochs(epochs.path, data):
            epochs.assign(epoch, start_offset)
        epochs._changes_flushed = epochs._changes
        epochs._flushed = epochs.entries
        return epochs

    @property
    def entries(self) -> list[tuple[int, int]]:
        """All (epoch, start offset) pairs, oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int | None:
        """The newest epoch, None if none is known."""
        return self._epochs[-1] if self._epochs else None

    @property
    def earliest_entry(self) -> tuple[int, int] | None:
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    @property
    def latest_entry(self) -> tuple[int, int] | None:
        return (self._epochs[-1], self._starts[-1]) if self._epochs else None

    @property
    def is_dirty(self) -> bool:
        """Whether the file is older than the entries in memory."""
        return self._changes != self._changes_flushed

    def is_dirty_below(self, end_offset: int) -> bool:
        """Whether the file lacks epochs that begin below `end_offset`, has wrong ones, or has none at all.

        At a log that ends there, the others need not be in the file: no record was written in them, and loading drops them.
        But a log that has had records needs a file with an epoch, else the next start takes it for lost: after DeleteRecords
        up to the end, batches may lie before the log start and no epoch below the end.
        """
        if not self.is_dirty:
            return False
        if end_offset > 0 and self._epochs and not self._flushed:
            return True
        in_file = [entry for entry in self._flushed if entry[1] < end_offset]
        return in_file != [entry for entry in self.entries if entry[1] < end_offset]

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `start_offset` is of `epoch`; returns whether an entry was added.

        Cheap if the epoch is the latest already, so it may be called for every batch. Entries with a later epoch, or that begin
        at or after `start_offset`, are removed. An entry of `epoch` itself keeps its earlier start. Apache Kafka replaces it:
        the offsets from its start on then count as those of the epoch before it.
        """
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and start_offset >= starts[-1]:
            return False
        if epoch < 0 or start_offset < 0:
            raise BrokenInvariant(f"{self.path}: leader epoch {epoch} cannot begin at offset {start_offset}")
        self._changes += 1
        while epochs and (epochs[-1] > epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        if epochs and epochs[-1] == epoch:
            return False
        epochs.append(epoch)
        starts.append(start_offset)
        return True

    def epoch_for(self, offset: int) -> int | None:
        """The epoch in which `offset` was, or would be, written; None if it lies before the first known epoch."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else None

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch`, and its end offset: the answer to OffsetsForLeaderEpoch.

        The newest epoch ends at the log end offset. For an epoch below all known ones the answer is that epoch itself and
        the first known start offset: its records are gone, so a follower begins there. (NO_EPOCH, NO_OFFSET) above all.
        """
        if epoch == NO_EPOCH:
            return NO_EPOCH, NO_OFFSET
        if self._epochs and self._epochs[-1] == epoch:
            return epoch, log_end_offset
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return NO_EPOCH, NO_OFFSET
        return (self._epochs[above - 1] if above else epoch), self._starts[above]

    def previous_epoch(self, epoch: int) -> int | None:
        """The largest known epoch below `epoch`."""
        index = bisect_left(self._epochs, epoch)
        return self._epochs[index - 1] if index else None

    def next_epoch(self, epoch: int) -> int | None:
        """The smallest known epoch above `epoch`."""
        index = bisect_right(self._epochs, epoch)
        return self._epochs[index] if index < len(self._epochs) else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop the epochs that begin at or after `end_offset`; True if there were any."""
        keep = bisect_left(self._starts, end_offset)
        if end_offset < 0 or keep == len(self._starts):
            return False
        del self._epochs[keep:], self._starts[keep:]
        self._changes += 1
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop the entries before `start_offset`; the epoch that holds it now begins there. True if anything changed."""
        index = bisect_right(self._starts, start_offset) - 1
        if index < 0 or (index == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:index], self._starts[:index]
        self._starts[0] = start_offset
        self._changes += 1
        return True

    def clear(self) -> None:
        """Remove all entries."""
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self._changes += 1

    async def flush(self) -> None:
        """Make all entries durable. Does nothing if none has changed since the last flush."""
        if not self.is_dirty:
            return
        async with self._writing:
            if self.is_dirty:  # the previous holder of the lock may have written our changes too
                changes, entries = self._changes, self.entries
                await self._disk.replace_file(self.path, format_epochs(entries))
                self._changes_flushed, self._flushed = changes, entries

    def file_content(self) -> bytes:
        """The bytes of a checkpoint with all entries, for a caller that replaces the files of many logs together."""
        return format_epochs(self.entries)

    def move_to(self, folder: str) -> None:
        """Use `folder`, to which the partition's folder was renamed."""
        self.path = f"{folder}/{LEADER_EPOCH_CHECKPOINT}"
