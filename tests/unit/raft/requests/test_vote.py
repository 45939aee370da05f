"""Vote: who gets a vote or a pre-vote, and the error codes."""

import pytest
from tests.support.raft.memory_log import Entry
from tests.support.raft.replicas import answer_in, ask, carry_out, elected, key, replica_of_three, sent_in, vote_answer

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.unattached import Unattached
from ottla.wire.messages.vote import VoteRequest, VoteRequestPartitionData, VoteRequestTopicData


def request(
    epoch: int, candidate: int = 2, last: tuple[int, int] = (0, 0), pre_vote: bool = False, cluster: str | None = "cluster",
    voter: int = 1, directory: Uuid | None = None, topic: str = "__cluster_metadata",
) -> VoteRequest:  # fmt: skip
    partition = VoteRequestPartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=key(candidate).directory_id if candidate > 0 else key(9).directory_id,
        voter_directory_id=key(1).directory_id if directory is None else directory,
        last_offset_epoch=last[0],
        last_offset=last[1],
        pre_vote=pre_vote,
    )
    return VoteRequest(
        cluster_id=cluster, voter_id=voter, topics=[VoteRequestTopicData(topic_name=topic, partitions=[partition])]
    )


def granted(effects: list[fx.Effect]) -> bool:
    told = answer_in(effects).topics[0].partitions[0]
    assert told.error_code == 0
    return bool(told.vote_granted)


def test_a_vote_is_durable_before_it_is_answered() -> None:
    replica = replica_of_three()
    effects = ask(replica, request(1))
    assert granted(effects)
    assert effects[0] == fx.Persist(ElectionState(1, -1, key(2)))
    assert isinstance(effects[1], fx.Answer)


def test_one_vote_in_an_epoch_and_again_to_the_same_candidate() -> None:
    replica = replica_of_three()
    assert granted(ask(replica, request(1, 2)))
    assert not granted(ask(replica, request(1, 3)))
    assert granted(ask(replica, request(1, 2)))
    assert granted(ask(replica, request(2, 3))), "another epoch"


def test_shorter_logs_get_no_vote() -> None:
    replica = replica_of_three(epochs=(1, 1, 2))
    assert not granted(ask(replica, request(5, last=(1, 9))))
    assert not granted(ask(replica, request(6, last=(2, 2))))
    assert granted(ask(replica, request(7, last=(2, 3))))


def test_pre_votes_change_nothing_on_disk() -> None:
    replica = replica_of_three()
    effects = ask(replica, request(0, pre_vote=True))
    assert granted(effects)
    assert not any(isinstance(each, fx.Persist) for each in effects)


def test_follower_grants_pre_votes_only_before_its_first_fetch() -> None:
    replica = replica_of_three(election=ElectionState(1, 3))
    assert granted(ask(replica, request(1, pre_vote=True, last=(1, 5))))
    replica.set_role(replica.role._replace(has_fetched=True))  # type: ignore[call-arg]
    assert not granted(ask(replica, request(1, pre_vote=True, last=(1, 5))))


def test_a_leader_grants_nothing_in_its_epoch() -> None:
    replica = elected()
    assert not granted(ask(replica, request(1, 3, pre_vote=True, last=(1, 5))))


@pytest.mark.parametrize(
    ("message", "top_level", "partition"),
    [
        (request(1, cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID, None),
        (request(1, topic="t"), ErrorCode.INVALID_REQUEST, None),
        (request(0, last=(0, 0)), 0, ErrorCode.INVALID_REQUEST),
        (request(9, last=(-1, 0)), 0, ErrorCode.INVALID_REQUEST),
        (request(4, last=(0, 0)), 0, ErrorCode.FENCED_LEADER_EPOCH),
        (request(6, candidate=-1), 0, ErrorCode.INVALID_REQUEST),
        (request(6, voter=3), 0, ErrorCode.INVALID_VOTER_KEY),
        (request(6, directory=key(8).directory_id), 0, ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_refusals(message: VoteRequest, top_level: int, partition: int | None) -> None:
    replica = replica_of_three(election=ElectionState(5))
    told = answer_in(ask(replica, message))
    assert told.error_code == top_level
    assert [each.error_code for topic in told.topics for each in topic.partitions] == ([] if partition is None else [partition])


def test_version_0_has_no_endpoints() -> None:
    replica = elected()
    assert answer_in(ask(replica, request(1, 3, last=(0, 0)), version=0)).node_endpoints == []
    (endpoint,) = answer_in(ask(replica, request(1, 3, last=(0, 0)), version=1)).node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (1, "h1", 1)


def waiting_replica() -> Replica:
    """A voter whose first pre-vote was lost: it stands again after its election timeout."""
    replica = replica_of_three(election=ElectionState(4))
    replica.tick(2000)
    assert isinstance(replica.role, Unattached)
    return replica


def test_prospective_asks_before_it_raises_the_epoch() -> None:
    replica = waiting_replica()
    effects = carry_out(replica, replica.tick(5000), 5000)
    assert isinstance(replica.role, Prospective)
    assert replica.epoch == 4
    asked = sent_in(effects)
    assert [each.destination.id for each in asked] == [2, 3]
    assert all(each.message.topics[0].partitions[0].pre_vote for each in asked)  # type: ignore[attr-defined]
    effects = replica.received(2, asked[0].correlation, vote_answer(4), 5000)
    assert isinstance(replica.role, Candidate)
    assert replica.epoch == 5
    assert effects[0] == fx.Persist(ElectionState(5, -1, key(1)))


def test_replica_that_starts_among_voters_without_pre_votes_waits_for_its_timeout() -> None:
    replica = replica_of_three(election=ElectionState(4))
    replica.unspoken(2, replica.connections._in_flight[2].correlation, 5)
    assert isinstance(replica.role, Unattached)
    assert (replica.epoch, replica.deadline_ms) == (4, 1005)


def test_prospective_stands_at_once_if_a_voter_does_not_know_pre_votes() -> None:
    replica = waiting_replica()
    (send, _) = sent_in(carry_out(replica, replica.tick(5000), 5000))
    effects = replica.unspoken(2, send.correlation, 5000)
    assert isinstance(replica.role, Candidate)
    assert effects[0] == fx.Persist(ElectionState(5, -1, key(1)))
    asked = sent_in([*effects, *replica.tick(5100)])
    assert {each.destination.id for each in asked} == {2, 3}
    assert not any(each.message.topics[0].partitions[0].pre_vote for each in asked)  # type: ignore[attr-defined]
    candidate = replica.role
    replica.unspoken(3, asked[-1].correlation, 5100)
    assert replica.role == candidate, "a vote that was not understood raises no epoch"


def test_an_isolated_voter_raises_no_epoch() -> None:
    replica = replica_of_three(election=ElectionState(4))
    for now_ms in range(1000, 60_000, 500):
        for send in sent_in(replica.tick(now_ms)):
            replica.failed(send.destination.id, send.correlation, now_ms)
    assert replica.epoch == 4


def test_entries_are_compared_by_epoch_first() -> None:
    replica = replica_of_three()
    replica.log.entries.append(Entry(3, 1))  # type: ignore[attr-defined]
    assert not granted(ask(replica, request(9, last=(2, 100))))
