"""The history of voter sets and kraft.version levels, by offset of the metadata log.

A control record takes effect when it is appended, committed or not. A snapshot needs the values at its offset; a truncated log
falls back to the values before the cut. Offsets here are those of the records. Values from a snapshot have the snapshot's last
offset, which is -1 for the one that formatting writes.
"""

from __future__ import annotations

from bisect import bisect_left

from ottla.raft.control import read_kraft_version, read_kraft_voters
from ottla.raft.voters import VoterSet
from ottla.records.control import ControlRecord, ControlType

BEFORE_THE_LOG = -1


class VoterHistory:
    """Voter sets and levels of kraft.version, by offset. Before the first record, the configured static voters apply."""

    def __init__(self, static_voters: VoterSet) -> None:
        self._static = static_voters
        self._voter_offsets: list[int] = []
        self._voters: list[VoterSet] = []
        self._level_offsets: list[int] = []
        self._levels: list[int] = []

    def note(self, offset: int, control: ControlRecord) -> None:
        """Record a control record of the log or of a snapshot, if it is about voters."""
        if control.type == ControlType.KRAFT_VOTERS:
            self._voter_offsets.append(offset)
            self._voters.append(read_kraft_voters(control))
        elif control.type == ControlType.KRAFT_VERSION:
            self._level_offsets.append(offset)
            self._levels.append(read_kraft_version(control))

    @property
    def voters(self) -> VoterSet:
        """The newest voter set."""
        return self._voters[-1] if self._voters else self._static

    @property
    def kraft_version(self) -> int:
        """The newest level of kraft.version."""
        return self._levels[-1] if self._levels else 0

    @property
    def is_only_in_snapshot(self) -> bool:
        """Whether only the snapshot of formatting has the voters. The first leader then writes them into the log."""
        return bool(self._voter_offsets) and self._voter_offsets[-1] == BEFORE_THE_LOG

    def voters_before(self, offset: int) -> VoterSet:
        """The voter set after all records below `offset`."""
        count = bisect_left(self._voter_offsets, offset)
        return self._voters[count - 1] if count else self._static

    def kraft_version_before(self, offset: int) -> int:
        """The level of kraft.version after all records below `offset`."""
        count = bisect_left(self._level_offsets, offset)
        return self._levels[count - 1] if count else 0

    def truncate_to(self, end_offset: int) -> None:
        """Drop the values from `end_offset` on: the log was truncated there."""
        count = bisect_left(self._voter_offsets, end_offset)
        del self._voter_offsets[count:], self._voters[count:]
        count = bisect_left(self._level_offsets, end_offset)
        del self._level_offsets[count:], self._levels[count:]

    def clear(self) -> None:
        """Forget all records: a snapshot takes the place of the log."""
        self.truncate_to(BEFORE_THE_LOG)
