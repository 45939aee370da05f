"""The history of voter sets and kraft.version levels, by offset of the metadata log, and the control records that change them.

A control record takes effect when it is appended, committed or not. A snapshot needs the values at its offset; a truncated log
falls back to the values before the cut. Offsets here are those of the records. Values from a snapshot have the snapshot's last
offset, which is -1 for the one that formatting writes.

A leader's epoch begins with LeaderChange, and the voters if the log does not have them (`first_records`). To raise
kraft.version from 0 to 1, the leader writes the voters, which were in the settings, into the log (`upgrade_records`). It needs
the endpoints, the directory id and the supported levels of every voter; each tells them to a new leader
(`requests/update_raft_voter.py`). Both records are one batch, and take effect when they are appended.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from ottla.raft import control
from ottla.raft.control import read_kraft_version, read_kraft_voters
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import KRAFT_VERSIONS, Endpoints, ReplicaKey, Voter, VoterSet
from ottla.records.control import ControlRecord, ControlType

if TYPE_CHECKING:
    from ottla.raft.replica import Replica

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
    def voters_offset(self) -> int:
        """The offset of the newest voter record; that before the log if there is none."""
        return self._voter_offsets[-1] if self._voter_offsets else BEFORE_THE_LOG

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


def first_records(
    local: ReplicaKey, granting: tuple[ReplicaKey, ...], history: VoterHistory, endpoints: Endpoints
) -> tuple[ControlRecord, ...]:
    """LeaderChange; then the voters, if only the snapshot of formatting has them or this voter's `endpoints` have changed."""
    voters = history.voters
    controls = [control.leader_change(local.id, voters, granting)]
    if history.kraft_version == 0:
        return tuple(controls)
    mine = voters.get(local.id)
    has_moved = mine is not None and bool(endpoints) and dict(mine.endpoints) != dict(endpoints)
    if mine is not None and has_moved:
        voters = voters.with_voter(Voter(mine.key, endpoints, mine.kraft_versions))
    if history.is_only_in_snapshot:
        controls.append(control.kraft_version(history.kraft_version))
    if history.is_only_in_snapshot or has_moved:
        controls.append(control.kraft_voters(voters))
    return tuple(controls)


def refuse_upgrade(replica: Replica) -> str | None:
    """Why kraft.version cannot be raised now; None if it can."""
    role, level = replica.role, KRAFT_VERSIONS[1]
    if not isinstance(role, Leader) or replica.history.kraft_version >= level:
        return "this node does not lead a quorum with a lower level"
    unknown = [str(voter.key.id) for voter in replica.voters if voter.key.id not in role.described]
    if unknown:
        return f"voter {', '.join(unknown)} has not told the leader its directory: start it, and try again in a few seconds"
    old = [
        str(each.key.id) for each in role.described.values() if not each.kraft_versions[0] <= level <= each.kraft_versions[1]
    ]
    return f"voter {', '.join(old)} does not support it: upgrade its release first" if old else None


def upgrade_records(replica: Replica) -> tuple[ControlRecord, ...]:
    """The records that raise kraft.version, unless `refuse_upgrade` has a reason."""
    role = replica.role
    assert isinstance(role, Leader)
    voters = VoterSet(role.described[voter.key.id] for voter in replica.voters)
    return control.kraft_version(KRAFT_VERSIONS[1]), control.kraft_voters(voters)
