"""AddRaftVoter: error codes, the question for versions, and observers that join by themselves."""

import pytest
from tests.support.raft.dynamic import asked_of, dynamic_leader
from tests.support.raft.replicas import answer_in, key, replica_of_three, sent_in

from ottla.errors.codes import ErrorCode
from ottla.raft import control
from ottla.raft.replica import Replica
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


def add(node_id: int = 4, listener: str = "C", cluster: str = "cluster", ack: bool = True) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=cluster,
        voter_id=node_id,
        voter_directory_id=key(node_id).directory_id,
        listeners=[Listener(name=listener, host="h4", port=4)],
        ack_when_committed=ack,
    )


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (add(cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (add(listener="OTHER"), ErrorCode.INVALID_REQUEST),
        (add(2), ErrorCode.DUPLICATE_VOTER),
    ],
)
def test_refusals(message: AddRaftVoterRequest, code: int) -> None:
    assert answer_in(asked_of(dynamic_leader(), message)).error_code == code


def test_leader_asks_the_new_voter_for_its_versions() -> None:
    replica = dynamic_leader()
    (send,) = sent_in(asked_of(replica, add()))
    assert (send.destination.id, send.destination.host) == (4, "h4")
    assert isinstance(send.message, ApiVersionsRequest)
    assert answer_in(asked_of(replica, add(5))).error_code == ErrorCode.REQUEST_TIMED_OUT, "one change at a time"


def test_node_that_is_its_whole_cluster_takes_no_voters() -> None:
    replica = dynamic_leader()
    replica.settings = replica.settings._replace(can_grow=False)
    refusal = answer_in(asked_of(replica, add()))
    assert refusal.error_code == ErrorCode.INVALID_REQUEST
    assert "controller.quorum.bootstrap.servers" in refusal.error_message


def joining(directory: int = 4, voters: tuple[int, ...] = (2, 3), **settings: object) -> Replica:
    """Node 4 follows leader 3 of a dynamic quorum with an old directory of its own, or without."""
    replica = replica_of_three(4, **{"auto_join": True, **settings})
    keys = [key(node) for node in voters] + [ReplicaKey(4, key(directory).directory_id)] * (directory != 4)
    replica.history.note(0, control.kraft_version(1))
    replica.history.note(0, control.kraft_voters(VoterSet(Voter(each, {"C": (f"h{each.id}", each.id)}) for each in keys)))
    replica.become_follower(5, 3, {"C": ("h3", 3)}, 0)
    return replica


def test_observer_joins_by_itself_after_the_fetch_timeout() -> None:
    replica = joining()
    (send,) = sent_in(replica.tick(1999))
    assert isinstance(send.message, FetchRequest)
    replica.connections.reset()
    (send,) = sent_in(replica.tick(1999))
    replica.connections.reset()
    replica.set_role(replica.role._replace(fetch_deadline_ms=9000))  # type: ignore[call-arg]
    (send,) = sent_in(replica.tick(2000))
    assert isinstance(send.message, AddRaftVoterRequest)
    assert (send.message.voter_id, send.message.voter_directory_id) == (4, key(4).directory_id)
    assert not send.message.ack_when_committed, "its own Fetch may be needed for the commit"
    (send,) = sent_in(replica.received(3, send.correlation, AddRaftVoterResponse(error_code=0), 2100))
    assert isinstance(send.message, FetchRequest)


def test_observer_removes_its_old_directory_first() -> None:
    replica = joining(directory=8)
    replica.set_role(replica.role._replace(fetch_deadline_ms=9000))  # type: ignore[call-arg]
    (send,) = sent_in(replica.tick(2000))
    assert isinstance(send.message, RemoveRaftVoterRequest)
    assert (send.message.voter_id, send.message.voter_directory_id) == (4, key(8).directory_id)


@pytest.mark.parametrize("settings", [{"auto_join": False}, {"can_be_voter": False}])
def test_others_stay_observers(settings: dict[str, object]) -> None:
    replica = joining(**settings)
    replica.set_role(replica.role._replace(fetch_deadline_ms=9000))  # type: ignore[call-arg]
    assert [type(each.message) for each in sent_in(replica.tick(5000))] == [FetchRequest]
