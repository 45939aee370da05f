"""What adding, removing and updating a voter share: one change at a time, effective when appended, answered when committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID
from ottla.raft import control
from ottla.raft.effects import Answer, AppendControls
from ottla.raft.requests.common import has_wrong_cluster, refuse_leader_request
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import Voter, VoterSet
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ottla.raft.replica import Replica

ADD = 80

Refusal = tuple[int, str | None]
"""An error code, and its text."""


class VoterChange(NamedTuple):
    """A change that is under way."""

    token: object
    api_key: int
    deadline_ms: int
    voter: Voter | None = None
    """The voter to add, until its supported versions are known."""
    offset: int | None = None
    """Where the new voters are in the log, once they are appended."""
    is_answered: bool = False


def refuse_request(replica: Replica, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> Refusal | None:
    """Why a request is refused without a look at the voters; None if it is not."""
    if has_wrong_cluster(replica, request.cluster_id):
        text = f"this is cluster {replica.settings.cluster_id}, not {request.cluster_id}"
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    refusal = refuse_leader_request(replica, replica.epoch)
    if refusal is not None:
        return refusal, None
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST, "the request names no voter: give its id and its directory id"
    return None


def refuse_for_now(replica: Replica) -> Refusal | None:
    """Why the leader can change no voter at this moment; None if it can."""
    role = replica.role
    assert isinstance(role, Leader)
    if replica.voter_change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way: try again when it is done"
    if role.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed a record of its epoch yet: try again"
    if replica.history.voters_offset >= role.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet: try again"
    return None


def refuse_change(replica: Replica) -> Refusal | None:
    """Why the leader appends no new voters; None if it does."""
    if replica.history.kraft_version < 1:
        text = "voters can be changed with kraft.version 1 only, and it is 0: raise it first"
        return ErrorCode.UNSUPPORTED_VERSION, text
    return refuse_for_now(replica)


def append_voters(replica: Replica, voters: VoterSet) -> int:
    """Append a new voter set; returns its offset."""
    offset = replica.log.end_offset
    replica.change_log(AppendControls((control.kraft_voters(voters),), replica.epoch))
    return offset


def answer_of(api_key: int, error: int, text: str | None) -> AddRaftVoterResponse | RemoveRaftVoterResponse:
    response = AddRaftVoterResponse if api_key == ADD else RemoveRaftVoterResponse
    return response(error_code=error, error_message=text)


def settle(replica: Replica, change: VoterChange, now_ms: int) -> None:
    """Answer and end the change if it is committed, timed out, or this replica leads no more."""
    role = replica.role
    if not isinstance(role, Leader):
        end(replica, change, ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader has changed: check the voters before you try again")
    elif change.offset is not None and role.high_watermark is not None and role.high_watermark > change.offset:
        end(replica, change, ErrorCode.NONE, None)
        if not replica.is_voter:
            replica.become_resigned(now_ms)  # it has removed itself, and the others know it
    elif now_ms >= change.deadline_ms:
        end(replica, change, ErrorCode.REQUEST_TIMED_OUT, "the change was not committed in time: it may be committed later")


def end(replica: Replica, change: VoterChange, error: int, text: str | None) -> None:
    replica.voter_change = None
    if not change.is_answered:
        replica.effects.append(Answer(change.token, answer_of(change.api_key, error, text)))


def leader_has_answered(replica: Replica, error: int, now_ms: int) -> bool:
    """The leader has answered a request about this replica itself; returns whether its connection may be used at once."""
    role = replica.role
    if error == ErrorCode.NONE and isinstance(role, Follower):
        replica.set_role(role._replace(fetch_deadline_ms=now_ms + replica.settings.fetch_timeout_ms))
    return error != ErrorCode.NOT_LEADER_OR_FOLLOWER
