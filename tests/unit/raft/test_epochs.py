"""Epochs that no honest replica claims: refused, never written, and repaired when they are in quorum-state."""

from typing import Any

import pytest
from tests.support.raft.replicas import answer_in, ask, carry_out, key, replica_of_three, vote_answer

from ottla.errors import BrokenInvariant
from ottla.errors.codes import ErrorCode
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.epochs import EPOCH_LAST, EPOCH_MAX, JUMP_MAX, RECOVERED_ABOVE_LOG, HeardEpochs, recovered
from ottla.raft.quorum_state import format_quorum_state, parse_quorum_state
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.transitions import transition
from ottla.raft.voters import VoterSet, static_voters
from ottla.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
)
from ottla.wire.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
)
from ottla.wire.messages.vote import VoteRequest, VoteRequestPartitionData, VoteRequestTopicData

ALONE = static_voters([(1, "h1", 1)], "C")
TOPIC = "__cluster_metadata"


def vote(epoch: int, pre_vote: bool = False) -> VoteRequest:
    partition = VoteRequestPartitionData(
        replica_epoch=epoch, replica_id=2, replica_directory_id=key(2).directory_id, last_offset=9, pre_vote=pre_vote
    )
    return VoteRequest(cluster_id=None, topics=[VoteRequestTopicData(topic_name=TOPIC, partitions=[partition])])


def begin(epoch: int, leader_id: int = 2) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequestPartitionData(leader_id=leader_id, leader_epoch=epoch)
    return BeginQuorumEpochRequest(
        cluster_id=None, topics=[BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])]
    )


def end(epoch: int, leader_id: int = 2) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequestPartitionData(leader_id=leader_id, leader_epoch=epoch)
    return EndQuorumEpochRequest(
        cluster_id=None, topics=[EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])]
    )


def error_in(effects: list[fx.Effect]) -> int:
    return int(answer_in(effects).topics[0].partitions[0].error_code)


ABSURD = [JUMP_MAX + 2, EPOCH_LAST + 1, EPOCH_MAX - 1, EPOCH_MAX]


@pytest.mark.parametrize("epoch", ABSURD)
@pytest.mark.parametrize(
    "request_of", [vote, lambda epoch: vote(epoch, pre_vote=True), begin, end], ids=["vote", "pre-vote", "begin", "end"]
)
@pytest.mark.parametrize("voters", [replica_of_three().voters, ALONE], ids=["three", "one"])
def test_an_absurd_epoch_is_refused_and_changes_nothing(voters: VoterSet, request_of: Any, epoch: int) -> None:
    replica = replica_of_three(voters=voters)
    before = replica.role
    effects = ask(replica, request_of(epoch))
    assert error_in(effects) == ErrorCode.INVALID_REQUEST
    assert replica.role == before
    assert not any(isinstance(each, fx.Persist) for each in effects)
    (told,) = [each for each in effects if isinstance(each, fx.Disbelieved)]
    assert f"epoch {epoch}" in told.problem


@pytest.mark.parametrize("request_of", [begin, end])
def test_the_only_voter_follows_nobody(request_of: Any) -> None:
    replica = replica_of_three(voters=ALONE)
    assert isinstance(replica.role, Leader)
    assert error_in(ask(replica, request_of(replica.epoch + 1))) == ErrorCode.INVALID_REQUEST
    assert isinstance(replica.role, Leader)


def test_a_candidate_without_pre_votes_is_heard_after_months_alone() -> None:
    replica = replica_of_three()
    assert error_in(ask(replica, vote(60 * 60 * 24 * 90))) == ErrorCode.NONE
    assert replica.epoch == 60 * 60 * 24 * 90


def test_many_small_jumps_do_not_end_the_quorum() -> None:
    replica = replica_of_three()
    for number in range(600):
        ask(replica, vote(min(EPOCH_MAX, replica.epoch + JUMP_MAX)), now_ms=number)
        ask(replica, vote(replica.epoch + 2), now_ms=number)
    assert replica.epoch <= JUMP_MAX + 10
    ask(replica, vote(replica.epoch + 1), now_ms=2000)
    assert replica.role.epoch > JUMP_MAX, "honest elections are heard all the while"


def test_the_answer_of_a_node_that_was_asked_is_believed_further() -> None:
    """A voter that was away for longer than requests may tell catches up by its own questions."""
    replica = replica_of_three()
    voter_id, in_flight = next(iter(replica.connections._in_flight.items()))
    answer = vote_answer(5 * JUMP_MAX, granted=False)
    carry_out(replica, replica.received(voter_id, in_flight.correlation, answer, 5000), 5000)
    assert replica.epoch == 5 * JUMP_MAX


def test_an_answer_beyond_the_last_epoch_is_ignored() -> None:
    replica = replica_of_three()
    voter_id, in_flight = next(iter(replica.connections._in_flight.items()))
    carry_out(replica, replica.received(voter_id, in_flight.correlation, vote_answer(EPOCH_MAX, granted=False), 1), 1)
    assert replica.epoch == 0


def test_an_epoch_that_does_not_fit_is_never_reached() -> None:
    with pytest.raises(BrokenInvariant, match="the last epoch"):
        transition(Prospective(EPOCH_MAX, (key(1),)), Candidate(EPOCH_MAX + 1, key(1), (key(1),)))


def test_what_requests_may_raise_comes_back_slowly() -> None:
    heard = HeardEpochs()
    assert heard.allow(5, 5 + JUMP_MAX, 0)
    heard.raised(JUMP_MAX)
    assert not heard.allow(0, 1, 50)
    assert heard.allow(0, 1, 100)
    assert not heard.allow(0, 2, 100)
    assert heard.allow(0, 10, 1000)


def test_a_forged_epoch_on_disk_is_replaced_from_the_log() -> None:
    found = parse_quorum_state("f", format_quorum_state(ElectionState(1 << 31, 1, key(1)), 1, VoterSet()))
    assert recovered(found, 7) == ElectionState(7 + RECOVERED_ABOVE_LOG)
    assert RECOVERED_ABOVE_LOG < JUMP_MAX, "the others follow"


def test_an_honest_election_is_taken_as_it_is() -> None:
    for election in (None, ElectionState(3, 1), ElectionState(EPOCH_LAST, -1, key(2))):
        assert recovered(election, 0) == election
