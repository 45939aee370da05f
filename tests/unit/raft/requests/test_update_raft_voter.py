"""UpdateRaftVoter: when a voter sends it, what the leader does with it, and the error codes."""

import pytest
from tests.support.raft.dynamic import asked_of, dynamic_leader, note_voters
from tests.support.raft.replicas import answer_in, ask, carry_out, elected, key, replica_of_three, sent_in

from ottla.errors.codes import ErrorCode
from ottla.raft import control
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import Voter, VoterSet
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.update_raft_voter import (
    CurrentLeader,
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)


def update(
    node_id: int = 2, directory: int | None = None, cluster: str = "cluster", epoch: int = 1, listener: str = "C", low: int = 0
) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=cluster,
        current_leader_epoch=epoch,
        voter_id=node_id,
        voter_directory_id=key(directory or node_id).directory_id,
        listeners=[Listener(name=listener, host="moved", port=7)],
        kraft_version_feature=KRaftVersionFeature(min_supported_version=low, max_supported_version=max(low, 1)),
    )


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (update(cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (update(epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (update(epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (update(listener="OTHER"), ErrorCode.INVALID_REQUEST),
        (update(low=2), ErrorCode.INVALID_REQUEST),
        (update(9), ErrorCode.VOTER_NOT_FOUND),
        (update(2, directory=8), ErrorCode.VOTER_NOT_FOUND),
        (UpdateRaftVoterRequest(cluster_id="cluster", current_leader_epoch=1, voter_id=2), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(message: UpdateRaftVoterRequest, code: int) -> None:
    effects = asked_of(dynamic_leader(), message)
    assert answer_in(effects).error_code == code
    assert not any(isinstance(each, fx.AppendControls) for each in effects)


def test_new_endpoints_are_appended_and_answered_before_they_are_committed() -> None:
    replica = dynamic_leader()
    effects = asked_of(replica, update())
    answer = answer_in(effects)
    assert (answer.error_code, answer.current_leader.leader_id, answer.current_leader.host) == (0, 1, "h1")
    assert note_voters(replica, effects) == (1, 2, 3)
    assert replica.endpoints_of_voter(2) == {"C": ("moved", 7)}
    assert answer_in(asked_of(replica, update(3))).error_code == ErrorCode.REQUEST_TIMED_OUT, "one change at a time"


def test_update_that_changes_nothing_appends_nothing() -> None:
    replica = dynamic_leader()
    message = update()
    message.listeners = [Listener(name="C", host="h2", port=2)]
    effects = asked_of(replica, message)
    assert answer_in(effects).error_code == 0
    assert not any(isinstance(each, fx.AppendControls) for each in effects)


def static_leader() -> Replica:
    replica = elected()
    end_offset = replica.log.end_offset
    carry_out(replica, replica.synced(end_offset, 5000), 5000)
    replica.follower_fetched(key(2), end_offset, 5000)
    replica.tick(5000)
    return replica


def test_static_quorum_keeps_the_directory_in_memory() -> None:
    replica = static_leader()
    effects = ask(replica, update(2), 0, 5000)
    assert answer_in(effects).error_code == 0
    assert not any(isinstance(each, fx.AppendControls) for each in effects)
    assert isinstance(replica.role, Leader)
    assert replica.role.described[2].key == key(2)
    assert answer_in(ask(replica, update(9), 0, 5000)).error_code == ErrorCode.VOTER_NOT_FOUND


def follower(**options: object) -> Replica:
    """Voter 1 follows 3 and has an answer to its Fetch every 400 ms."""
    return replica_of_three(election=ElectionState(2, 3), **options)


def answered(replica: Replica, now_ms: int) -> list[fx.Send]:
    """Let the request to the leader fail; returns what is sent next to it."""
    under_way = replica.connections._in_flight.get(3)
    if under_way is not None:
        replica.connections.ended(3, under_way.correlation, True, now_ms)
    role = replica.role
    assert isinstance(role, Follower)
    replica.set_role(role._replace(fetch_deadline_ms=now_ms + 2000))
    return sent_in(replica.tick(now_ms))


def test_static_voter_tells_each_new_leader_once() -> None:
    replica = follower()
    assert isinstance(answered(replica, 400)[0].message, FetchRequest), "not before the fetch timeout"
    (send,) = answered(replica, 2000)
    message = send.message
    assert isinstance(message, UpdateRaftVoterRequest)
    assert (message.voter_id, message.voter_directory_id, message.current_leader_epoch) == (1, key(1).directory_id, 2)
    assert [(each.name, each.host, each.port) for each in message.listeners] == [("C", "h1", 1)]
    told = CurrentLeader(leader_id=3, leader_epoch=2)
    sent = sent_in(replica.received(3, send.correlation, UpdateRaftVoterResponse(current_leader=told), 2100))
    assert isinstance(sent[0].message, FetchRequest)
    assert isinstance(answered(replica, 9000)[0].message, FetchRequest), "the leader knows it"
    replica.become_follower(3, 2, {"C": ("h2", 2)}, 9000)
    assert not replica.role.has_updated_leader  # type: ignore[union-attr]


def test_refused_update_is_sent_again_after_the_fetch_timeout() -> None:
    replica = follower()
    (send,) = answered(replica, 2000)
    refusal = UpdateRaftVoterResponse(
        error_code=ErrorCode.REQUEST_TIMED_OUT, current_leader=CurrentLeader(leader_id=3, leader_epoch=2)
    )
    replica.received(3, send.correlation, refusal, 2000)
    assert isinstance(answered(replica, 3000)[0].message, FetchRequest)
    assert isinstance(answered(replica, 4000)[0].message, UpdateRaftVoterRequest)


def test_answer_of_another_leader_is_followed() -> None:
    replica = follower()
    (send,) = answered(replica, 2000)
    told = CurrentLeader(leader_id=2, leader_epoch=3, host="h2", port=2)
    answer = UpdateRaftVoterResponse(error_code=ErrorCode.FENCED_LEADER_EPOCH, current_leader=told)
    replica.received(3, send.correlation, answer, 2000)
    assert (replica.leader_id, replica.epoch, replica.leader_endpoints) == (2, 3, {"C": ("h2", 2)})


@pytest.mark.parametrize(("port", "is_told"), [(1, False), (99, True)])
def test_dynamic_voter_tells_its_endpoints_if_they_have_changed(port: int, is_told: bool) -> None:
    replica = follower()
    voters = VoterSet(Voter(key(node), {"C": (f"h{node}", port if node == 1 else node)}) for node in (1, 2, 3))
    replica.history.note(0, control.kraft_version(1))
    replica.history.note(0, control.kraft_voters(voters))
    (send,) = answered(replica, 2000)
    assert isinstance(send.message, UpdateRaftVoterRequest) == is_told
