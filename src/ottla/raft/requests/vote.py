"""Vote: a prospective replica asks whether it would win (pre-vote), a candidate asks for the votes of its epoch.

v1: directory ids, the leader's address in answers. v2: pre-votes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.requests.between_voters import ResponseClasses, learn_from_response, refuse, response_of
from ottla.raft.requests.common import TOPIC, is_for_another_voter, refuse_epoch, refuse_voter_request
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.prospective import Prospective
from ottla.raft.voters import ReplicaKey
from ottla.wire.messages.vote import (
    NodeEndpoint,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica

_CLASSES = ResponseClasses(VoteResponse, VoteResponseTopicData, VoteResponsePartitionData, NodeEndpoint)


def build(replica: Replica, voter: ReplicaKey) -> VoteRequest:
    partition = VoteRequestPartitionData(
        replica_epoch=replica.epoch,
        replica_id=replica.local.id,
        replica_directory_id=replica.local.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=replica.log.last_epoch,
        last_offset=replica.log.end_offset,
        pre_vote=isinstance(replica.role, Prospective),
    )
    topic = VoteRequestTopicData(topic_name=TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=replica.settings.cluster_id, voter_id=voter.id, topics=[topic])


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> VoteResponse:
    request: VoteRequest = inbound.message
    refusal = refuse(replica, request)
    if refusal is not None:
        return VoteResponse(error_code=refusal)
    asked = request.topics[0].partitions[0]
    epoch, last_epoch = asked.replica_epoch, asked.last_offset_epoch
    is_impossible = last_epoch > epoch if asked.pre_vote else last_epoch >= epoch
    if asked.last_offset < 0 or last_epoch < 0 or is_impossible:
        return _answer(replica, inbound, ErrorCode.INVALID_REQUEST)
    refusal = refuse_voter_request(replica, asked.replica_id, epoch) or refuse_epoch(replica, asked.replica_id, epoch, now_ms)
    if refusal is not None:
        return _answer(replica, inbound, refusal)
    if epoch > replica.epoch:
        replica.become_unattached(epoch, now_ms)
    if is_for_another_voter(replica, request.voter_id, asked.voter_directory_id):
        return _answer(replica, inbound, ErrorCode.INVALID_VOTER_KEY)
    candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
    is_up_to_date = (last_epoch, asked.last_offset) >= (replica.log.last_epoch, replica.log.end_offset)
    is_granted = replica.role.grants(candidate, is_up_to_date, asked.pre_vote)
    if is_granted and not asked.pre_vote:
        replica.vote_for(candidate, now_ms)
    elif is_granted and isinstance(role := replica.role, Prospective):
        is_longer = (last_epoch, asked.last_offset) > (replica.log.last_epoch, replica.log.end_offset)
        until_ms = now_ms + replica.settings.yield_ms
        replica.set_role(role.yields_to(candidate.id, replica.local.id, is_longer, until_ms))
    return _answer(replica, inbound, ErrorCode.NONE, is_granted)


def _answer(replica: Replica, inbound: Inbound, error: int, is_granted: bool = False) -> VoteResponse:
    response: VoteResponse = response_of(_CLASSES, replica, inbound, error, vote_granted=is_granted)
    return response


def answered(replica: Replica, sent: InFlight, response: VoteResponse, now_ms: int) -> bool:
    """A voter has answered; returns whether its connection may be used again at once."""
    told, handled = learn_from_response(replica, response, now_ms)
    if handled is not None:
        return handled
    role, voter = replica.role, replica.voters.get(sent.destination.id)
    is_of_this_role = isinstance(role, Prospective if is_pre_vote(sent) else Candidate)
    if voter is None or not is_of_this_role:
        return True
    assert isinstance(role, Prospective | Candidate)
    replica.set_role(role.granted_by(voter.key) if told.vote_granted else role.rejected_by(voter.key))
    return True


def is_pre_vote(sent: InFlight) -> bool:
    return isinstance(sent.message, VoteRequest) and sent.message.topics[0].partitions[0].pre_vote


def unspoken(replica: Replica, sent: InFlight, now_ms: int) -> None:
    """The voter is of a release without pre-votes: ask for real votes instead, or no election could ever be won.

    A replica that has just started waits for the election timeout first: real votes would end a living leader's epoch.
    """
    role = replica.role
    if not is_pre_vote(sent) or not isinstance(role, Prospective):
        return
    if role.is_starting:
        replica.set_role(role._replace(election_deadline_ms=now_ms))
    else:
        replica.become_candidate(now_ms)
