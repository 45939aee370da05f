"""BeginQuorumEpoch: a voter follows the leader that announces itself."""

from tests.support.raft.replicas import THREE, answer_in, ask, elected, key, replica_of_three, sent_in

from ottla.errors.codes import ErrorCode
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.requests import begin_quorum_epoch
from ottla.raft.roles.follower import Follower
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest


def announced(epoch: int = 5) -> BeginQuorumEpochRequest:
    leader = elected(3, epochs=())
    built = begin_quorum_epoch.build(leader, key(1))
    built.topics[0].partitions[0].leader_epoch = epoch
    return built


def test_voter_follows_and_fetches_after_the_election_is_durable() -> None:
    replica = replica_of_three()
    effects = ask(replica, announced())
    assert effects[0] == fx.Persist(ElectionState(5, 3))
    assert isinstance(replica.role, Follower)
    assert replica.role.endpoints == {"C": ("h3", 3)}
    assert [each.destination.id for each in sent_in(effects)] == [3]
    told = answer_in(effects).topics[0].partitions[0]
    assert (told.error_code, told.leader_id, told.leader_epoch) == (0, 3, 5)
    assert effects[-1] == fx.LeaderChanged(3, 5)


def test_an_older_epoch_is_fenced() -> None:
    replica = replica_of_three(election=ElectionState(6))
    assert answer_in(ask(replica, announced())).topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_second_leader_of_an_epoch_is_refused() -> None:
    replica = replica_of_three(election=ElectionState(5, 2))
    assert answer_in(ask(replica, announced())).topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert replica.leader_id == 2


def test_emptied_directory_is_not_the_voter_that_is_meant() -> None:
    message = announced()
    message.topics[0].partitions[0].voter_directory_id = key(8).directory_id
    told = answer_in(ask(replica_of_three(), message)).topics[0].partitions[0]
    assert told.error_code == ErrorCode.INVALID_VOTER_KEY


def test_another_cluster_and_another_topic_are_refused() -> None:
    message = announced()
    message.cluster_id = "other"
    assert answer_in(ask(replica_of_three(), message)).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    message = announced()
    message.topics[0].topic_name = "t"
    assert answer_in(ask(replica_of_three(), message)).error_code == ErrorCode.INVALID_REQUEST


def test_leader_announces_itself_to_voters_that_do_not_fetch() -> None:
    leader = elected()
    others = {voter.key.id for voter in THREE} - {1}
    assert {each.destination.id for each in sent_in(leader.tick(20_000))} <= others
