"""ApiVersions: a leader asks a node that is to be added as a voter which levels of kraft.version it supports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.effects import Answer
from ottla.raft.requests.voter_changes import VoterChange, answer_of, append_voters, end
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import VoterSet
from ottla.wire.messages.api_versions import ApiVersionsResponse

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Replica

_CAUGHT_UP_WITHIN_MS = 3_600_000


def answered(replica: Replica, sent: InFlight, response: ApiVersionsResponse, now_ms: int) -> bool:
    """The new voter has told its versions: append the new voter set if it supports the level and has caught up."""
    change, role = _change_of(replica, sent), replica.role
    if change is None or change.voter is None or not isinstance(role, Leader):
        return True
    if response.error_code != ErrorCode.NONE:
        end(replica, change, ErrorCode.REQUEST_TIMED_OUT, "the new voter did not tell the versions it supports: try again")
        return False
    levels = next(
        ((each.min_version, each.max_version) for each in response.supported_features if each.name == "kraft.version"), (0, 0)
    )
    level = replica.history.kraft_version
    if not levels[0] <= level <= levels[1]:
        text = f"the new voter supports kraft.version {levels[0]} to {levels[1]}, and the quorum has {level}: upgrade it first"
        end(replica, change, ErrorCode.INVALID_REQUEST, text)
        return True
    progress = role.progress.get(change.voter.key)
    if progress is None or progress.last_caught_up_ms < 0 or now_ms - progress.last_fetch_ms > _CAUGHT_UP_WITHIN_MS:
        end(replica, change, ErrorCode.REQUEST_TIMED_OUT, "the new voter has not caught up with the leader: try again later")
        return True
    voters = VoterSet([*replica.voters, change.voter._replace(kraft_versions=levels)])
    change = change._replace(offset=append_voters(replica, voters))
    if replica.acks_at_append:
        replica.effects.append(Answer(change.token, answer_of(change.api_key, ErrorCode.NONE, None)))
        change = change._replace(is_answered=True)
    replica.voter_change = change
    return True


def failed(replica: Replica, sent: InFlight) -> None:
    """The new voter could not be asked: nothing was appended, so the operator hears of it at once."""
    change = _change_of(replica, sent)
    if change is not None:
        node_id, host, port = sent.destination
        text = f"the leader cannot reach the new voter, node {node_id}, at {host}:{port}: check that address, then try again"
        end(replica, change, ErrorCode.REQUEST_TIMED_OUT, text)


def _change_of(replica: Replica, sent: InFlight) -> VoterChange | None:
    """The change for which a node was asked, if it still waits for that."""
    change = replica.voter_change
    if change is None or change.offset is not None or change.voter is None:
        return None
    return change if change.voter.key.id == sent.destination.id else None
