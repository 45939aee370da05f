"""Raising kraft.version from 0 to 1: the leader writes the voters, which were in the settings, into the log. Pure.

It needs the endpoints, the directory id and the supported levels of every voter. Each voter tells them to a new leader
(`requests/update_raft_voter.py`). Both records are one batch, and take effect when they are appended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.raft import control
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import KRAFT_VERSIONS, VoterSet

if TYPE_CHECKING:
    from ottla.raft.replica import Replica
    from ottla.records.control import ControlRecord


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
