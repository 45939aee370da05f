"""The versions of a new voter: refusals, effect at append, answer at commit or at append."""

from tests.support.raft.dynamic import asked_of, dynamic_leader, note_voters
from tests.support.raft.replicas import answer_in, key, sent_in

from ottla.errors.codes import ErrorCode
from ottla.raft import effects as fx
from ottla.raft.replica import Replica
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey


def add(ack: bool = True) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id="cluster",
        voter_id=4,
        voter_directory_id=key(4).directory_id,
        listeners=[Listener(name="C", host="h4", port=4)],
        ack_when_committed=ack,
    )


def versions(highest: int = 1) -> ApiVersionsResponse:
    return ApiVersionsResponse(supported_features=[SupportedFeatureKey(name="kraft.version", max_version=highest)])


def told(replica: Replica, effects: list[fx.Effect], response: ApiVersionsResponse) -> list[fx.Effect]:
    (send,) = sent_in(effects)
    assert (send.destination.id, send.destination.host) == (4, "h4")
    return replica.received(4, send.correlation, response, 5000)


def test_observer_that_has_not_caught_up_is_refused() -> None:
    replica = dynamic_leader()
    effects = told(replica, asked_of(replica, add()), versions())
    assert answer_in(effects).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_observer_without_kraft_version_1_is_refused() -> None:
    replica = dynamic_leader()
    assert answer_in(told(replica, asked_of(replica, add()), versions(0))).error_code == ErrorCode.INVALID_REQUEST


def test_observer_that_cannot_be_asked_is_refused_at_once() -> None:
    replica = dynamic_leader()
    (send,) = sent_in(asked_of(replica, add()))
    refusal = answer_in(replica.failed(4, send.correlation, 5000, is_refused=True))
    assert refusal.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "node 4, at h4:4" in refusal.error_message
    assert replica.voter_change is None, "another change may begin"


def test_caught_up_observer_becomes_a_voter_at_append() -> None:
    replica = dynamic_leader()
    replica.follower_fetched(key(4), replica.log.end_offset, 5000)
    effects = told(replica, asked_of(replica, add()), versions())
    assert note_voters(replica, effects) == (1, 2, 3, 4)
    assert not any(isinstance(each, fx.Answer) for each in effects)
    end_offset = replica.log.end_offset
    replica.synced(end_offset, 5000)
    replica.follower_fetched(key(2), end_offset, 5000)
    replica.tick(5000)
    assert replica.voter_change is not None, "two of four are no majority"
    replica.follower_fetched(key(4), end_offset, 5000)
    assert answer_in(replica.tick(5000)).error_code == 0


def test_answer_at_append_if_the_request_asks_for_it() -> None:
    replica = dynamic_leader()
    replica.follower_fetched(key(4), replica.log.end_offset, 5000)
    assert answer_in(told(replica, asked_of(replica, add(ack=False)), versions())).error_code == 0
