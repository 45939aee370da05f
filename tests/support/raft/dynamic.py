"""A leader of a dynamic quorum (kraft.version 1), for tests."""

from typing import Any

from tests.support.raft.replicas import NEWEST, carry_out, elected, key

from ottla.raft import control
from ottla.raft import effects as fx
from ottla.raft.replica import Inbound, Replica
from ottla.raft.voters import Voter, VoterSet


def dynamic_leader(kraft_version: int = 1) -> Replica:
    """Voters 1, 2 and 3, led by 1, with everything committed."""
    voters = VoterSet(Voter(key(node), {"C": (f"h{node}", node)}) for node in (1, 2, 3))
    replica = elected(voters=voters)
    replica.history.note(0, control.kraft_version(kraft_version))
    replica.history.note(0, control.kraft_voters(voters))
    end_offset = replica.log.end_offset
    carry_out(replica, replica.synced(end_offset, 5000), 5000)
    replica.follower_fetched(key(2), end_offset, 5000)
    replica.tick(5000)
    return replica


def asked_of(replica: Replica, message: Any) -> list[fx.Effect]:
    """Give the leader a request; its effects are carried out, except that voters are not noted."""
    version = NEWEST.get(message.KEY, 1 if message.KEY == 80 else 0)
    return replica.asked(Inbound("asked", message, version, "C"), 5000)


def note_voters(replica: Replica, effects: list[fx.Effect]) -> tuple[int, ...]:
    """Append the control records among `effects` as a host does; returns the ids of the voters."""
    for effect in effects:
        if isinstance(effect, fx.AppendControls):
            for at, record in enumerate(effect.controls, start=replica.log.end_offset):
                replica.history.note(at, record)
    carry_out(replica, effects, 5000)
    return replica.voters.ids
