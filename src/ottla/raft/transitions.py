"""From which role a replica may become what. The one table of transitions, and the rules every one of them keeps.

    unattached ──────▶ prospective ──▶ candidate ──▶ leader ──▶ resigned
        ▲  ▲                │  ▲          │   │         │          │
        │  └────────────────┘  └──────────┘   │         │          │
        └─────────────────────────────────────┴─────────┴──────────┘
                   (a higher epoch seen, or nobody won)

Roles are named tuples, and tuples of different roles may be equal: what tells them apart is their type.

A restarted leader begins as resigned. Where it is the only voter there is nobody to wait for: it is prospective at once.
"""

from __future__ import annotations

from typing import Final

from ottla.errors import BrokenInvariant
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached

Role = Unattached | Prospective | Candidate | Leader | Resigned

TRANSITIONS: Final[dict[type[Role], tuple[type[Role], ...]]] = {
    Unattached: (Unattached, Prospective),
    Prospective: (Prospective, Unattached, Candidate),
    Candidate: (Candidate, Unattached, Prospective, Leader),
    Leader: (Leader, Unattached, Resigned),
    Resigned: (Unattached, Prospective),
}


def transition(old: Role, new: Role) -> Role:
    """`new`, if a replica may go there from `old`; `BrokenInvariant` if not."""
    problem = _forbidden(old, new)
    if problem is not None:
        raise BrokenInvariant(f"the quorum cannot go from {old} to {new}: {problem}")
    return new


def _forbidden(old: Role, new: Role) -> str | None:
    if type(new) not in TRANSITIONS[type(old)]:
        return f"{type(old).__name__} never becomes {type(new).__name__}"
    if new.epoch < old.epoch:
        return "epochs never go back"
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
