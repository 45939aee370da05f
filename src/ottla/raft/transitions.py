"""The table of allowed role transitions of a replica, and the rules that every transition obeys.

    unattached ──────▶ prospective ──▶ candidate ──▶ leader ──▶ resigned
        ▲  ▲                │  ▲          │   │         │          │
        │  └────────────────┘  └──────────┘   │         │          │
        └─────────────────────────────────────┴─────────┴──────────┘
                   (a higher epoch seen, or the election had no winner)

Each of them becomes a follower when it learns of another leader, in its epoch or a higher one. A leader or a resigned one needs
a higher epoch. A follower that hears nothing from its leader becomes prospective.

Roles are named tuples, and tuples of different roles may compare equal: tell them apart by type.

A restarted leader begins as resigned. If it is the only voter, it becomes prospective at once.
"""

from __future__ import annotations

from typing import Final

from ottla.errors import BrokenInvariant
from ottla.raft.epochs import EPOCH_MAX
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached

Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned

TRANSITIONS: Final[dict[type[Role], tuple[type[Role], ...]]] = {
    Unattached: (Unattached, Prospective, Follower),
    Prospective: (Prospective, Unattached, Candidate, Follower),
    Candidate: (Candidate, Unattached, Prospective, Leader, Follower),
    Leader: (Leader, Unattached, Resigned, Follower),
    Follower: (Follower, Unattached, Prospective),
    Resigned: (Resigned, Unattached, Prospective, Follower),
}


def transition(old: Role, new: Role) -> Role:
    """`new`, if the table and the rules allow it after `old`; `BrokenInvariant` if not."""
    problem = _forbidden(old, new)
    if problem is not None:
        raise BrokenInvariant(f"the quorum cannot go from {old} to {new}: {problem}")
    return new


def _forbidden(old: Role, new: Role) -> str | None:
    if type(new) not in TRANSITIONS[type(old)]:
        return f"{type(old).__name__} never becomes {type(new).__name__}"
    if new.epoch < old.epoch:
        return "epochs never go back"
    if new.epoch > EPOCH_MAX:
        return f"{EPOCH_MAX} is the last epoch that there can be"
    if isinstance(new, Candidate) and not isinstance(old, Candidate) and new.epoch != old.epoch + 1:
        return "a candidate raises the epoch by one"
    if isinstance(new, Leader) and new.epoch != old.epoch:
        return "a leader leads the epoch it was elected in"
    if new.epoch == old.epoch:
        before, after = old.election, new.election
        if before.has_leader and after.leader_id != before.leader_id:
            return "an epoch has one leader"
        if before.voted is not None and after.voted not in (before.voted, None):
            return "a replica votes once in an epoch"
        if before.voted is not None and after.voted is None and not after.has_leader:
            return "a vote is not forgotten within its epoch"
    return None
