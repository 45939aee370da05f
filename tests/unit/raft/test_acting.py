"""What roles do by themselves."""

from tests.support.raft.memory_log import MemoryLog
from tests.support.raft.replicas import answer_in, ask, elected, key, replica_of_three, sent_in, vote_answer

from ottla.errors.codes import ErrorCode
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.prospective import Prospective
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, LeaderIdAndEpoch, PartitionData
from ottla.wire.messages.vote import VoteRequest, VoteRequestPartitionData, VoteRequestTopicData

LEADER_3 = LeaderIdAndEpoch(leader_id=3, leader_epoch=2)


def test_lost_pre_vote_returns_to_the_known_leader() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    asked = {each.destination.id: each for each in sent_in(replica.tick(2000))}
    assert isinstance(replica.role, Prospective)
    for voter in (2, 3):
        replica.received(voter, asked[voter].correlation, vote_answer(2, granted=False, leader_id=3), 2000)
    assert isinstance(replica.role, Follower)
    assert replica.role.leader_id == 3


def test_candidate_without_a_majority_waits_for_its_timeout_then_asks_again() -> None:
    replica = replica_of_three(election=ElectionState(4, -1, key(1)))
    assert isinstance(replica.role, Candidate)
    replica.tick(999)
    assert isinstance(replica.role, Candidate)
    replica.tick(1000)
    assert isinstance(replica.role, Prospective)
    assert replica.epoch == 4


def test_follower_asks_bootstrap_servers_while_its_leader_fails() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    correlation = replica.connections._in_flight[3].correlation
    (send,) = sent_in(replica.failed(3, correlation, 10))
    assert send.destination.host == "h9"
    assert sent_in(replica.tick(11)) == [], "one Fetch at a time"


def test_observer_asks_a_leader_that_was_silent_again_if_the_bootstrap_server_names_it() -> None:
    replica = replica_of_three(7, election=ElectionState(2, 3), can_be_voter=False)
    (send,) = sent_in(replica.failed(3, replica.connections._in_flight[3].correlation, 2000))
    assert send.destination.host == "h9"
    refusal = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LEADER_3)
    refused = FetchResponse(responses=[FetchableTopicResponse(partitions=[refusal])])
    asked = []
    for now_ms in (2001, 2002, 2003):
        (send,) = sent_in(replica.received(send.destination.id, send.correlation, refused, now_ms))
        asked.append(send.destination.host)
    assert asked == ["h1", "h2", "h3"]
    (send,) = sent_in(replica.failed(send.destination.id, send.correlation, 4001))
    assert send.destination.host == "h9", "they take turns"


def test_observer_asks_the_voters_in_its_log_if_the_bootstrap_server_is_gone() -> None:
    asked = _servers_asked(replica_of_three(7, can_be_voter=False), rounds=7)
    assert asked == ["h9", "h1", "h2", "h3", "h9", "h1", "h2", "h3"]


def test_removed_controller_without_bootstrap_servers_asks_the_voters() -> None:
    replica = replica_of_three(1, voters=dynamic_voters(2, 3))
    replica.settings = replica.settings._replace(bootstrap_servers=())
    replica.high_watermark = 5
    assert not replica.may_stand
    replica.connections.reset()
    (send,) = sent_in(replica.tick(2000))
    assert send.destination.host in ("h2", "h3")


def test_replica_does_not_ask_itself_for_the_leader() -> None:
    wiped = Replica(
        ReplicaKey(1, key(8).directory_id),
        replica_of_three().settings,
        VoterHistory(dynamic_voters(1, 2, 3)),
        MemoryLog(),
        lambda limit: 0,
    )
    wiped.start(0)
    assert _servers_asked(wiped, rounds=4) == ["h9", "h2", "h3", "h9", "h2"]


def test_leader_outside_the_known_voter_set_still_has_its_turn() -> None:
    """It was added after this observer fell behind."""
    replica = replica_of_three(7, election=ElectionState(2, 3), can_be_voter=False)
    assert isinstance(replica.role, Follower)
    replica.set_role(replica.role._replace(endpoints={"C": ("h4", 4)}))
    (send,) = sent_in(replica.failed(3, replica.connections._in_flight[3].correlation, 2000))
    assert [send.destination.host, *_servers_asked(replica, rounds=4)[1:]] == ["h9", "h1", "h2", "h3", "h4"]


def test_observer_of_a_leader_that_was_silent_follows_it_again_when_it_answers() -> None:
    replica = replica_of_three(7, election=ElectionState(2, 3), can_be_voter=False)
    (send,) = sent_in(replica.failed(3, replica.connections._in_flight[3].correlation, 2000))
    for now_ms in (2200, 2600, 3000):
        (send,) = sent_in(replica.failed(send.destination.id, send.correlation, now_ms))
    assert send.destination.host == "h3"
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(current_leader=LEADER_3)])])
    (send,) = sent_in(replica.received(send.destination.id, send.correlation, answer, 3001))
    assert send.destination.id == 3
    assert isinstance(replica.role, Follower)
    assert (replica.role.has_fetched, replica.role.fetch_deadline_ms) == (True, 5001)


def test_leader_that_is_a_bootstrap_server_is_not_asked_twice_in_a_round() -> None:
    replica = replica_of_three(7, election=ElectionState(2, 3), can_be_voter=False)
    replica.settings = replica.settings._replace(bootstrap_servers=(("h9", 9), ("h3", 3)))
    replica.failed(3, replica.connections._in_flight[3].correlation, 2000)
    assert _servers_asked(replica, rounds=7) == ["h9", "h3", "h1", "h2", "h9", "h3", "h1", "h2"]


def dynamic_voters(*ids: int) -> VoterSet:
    return VoterSet(Voter(key(each), {"C": (f"h{each}", each)}) for each in ids)


def _servers_asked(replica: Replica, rounds: int) -> list[str]:
    """Who is asked for the leader: the server of the request that is under way, and the next `rounds` if all fail."""
    ((server, sent),) = replica.connections._in_flight.items()
    asked = [sent.destination.host]
    for number in range(rounds):
        (send,) = sent_in(replica.failed(server, sent.correlation, 3000 + 1000 * number))
        server, sent = send.destination.id, replica.connections._in_flight[send.destination.id]
        asked.append(send.destination.host)
    return asked


def test_leader_tells_only_voters_that_have_not_fetched() -> None:
    replica = elected()
    replica.follower_fetched(key(2), 1, 6500)
    told = [each for each in sent_in(replica.tick(7000)) if isinstance(each.message, BeginQuorumEpochRequest)]
    assert 2 not in {each.destination.id for each in told}


def follower_of_3(node_id: int = 1) -> tuple[Replica, int]:
    """A follower that has fetched from leader 3, and the correlation id of its next Fetch, at 1000 ms."""
    replica = replica_of_three(node_id, election=ElectionState(2, 3))
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(current_leader=LEADER_3)])])
    (send,) = sent_in(replica.received(3, replica.connections._in_flight[3].correlation, answer, 1000))
    assert isinstance(replica.role, Follower)
    assert replica.role.has_fetched
    return replica, send.correlation


def test_follower_asks_its_leader_again_at_once_when_the_connection_is_lost_and_stands_when_its_port_refuses() -> None:
    replica, correlation = follower_of_3()
    (again,) = sent_in(replica.failed(3, correlation, 1100, is_lost=True))
    assert (again.destination.id, type(replica.role)) == (3, Follower), "one lost connection proves nothing"
    asked = sent_in(replica.failed(3, again.correlation, 1101, is_refused=True))
    assert isinstance(replica.role, Prospective)
    assert {each.destination.id for each in asked} == {2, 3}


def test_follower_whose_leader_fails_twice_backs_off() -> None:
    replica, correlation = follower_of_3()
    (again,) = sent_in(replica.failed(3, correlation, 1100, is_lost=True))
    (send,) = sent_in(replica.failed(3, again.correlation, 1101, is_lost=True))
    assert send.destination.host == "h9"


def test_follower_whose_leader_is_silent_asks_others_first() -> None:
    replica, correlation = follower_of_3()
    (send,) = sent_in(replica.failed(3, correlation, 1100))
    assert send.destination.host == "h9"


def test_follower_that_stood_early_and_lost_keeps_its_fetch_timeout() -> None:
    replica, correlation = follower_of_3()
    asked = {each.destination.id: each for each in sent_in(replica.failed(3, correlation, 1100, is_refused=True))}
    for voter in (2, 3):
        replica.received(voter, asked[voter].correlation, vote_answer(2, granted=False, leader_id=3), 1200)
    assert isinstance(replica.role, Follower)
    assert replica.role.fetch_deadline_ms == 3000
    replica.failed(3, replica.connections._in_flight[3].correlation, 1300, is_refused=True)
    assert isinstance(replica.role, Follower), "it asks once until it hears the leader again, or the timeout ends"


def test_prospective_replica_lets_another_one_go_first_for_a_while() -> None:
    replica = replica_of_three(2, election=ElectionState(2, 3))
    asked = {each.destination.id: each for each in sent_in(replica.tick(2000))}
    granted = answer_in(ask(replica, pre_vote_of(1, to=2), now_ms=2001))
    assert granted.topics[0].partitions[0].vote_granted
    replica.received(1, asked[1].correlation, vote_answer(2), 2002)
    assert isinstance(replica.role, Prospective), "it would win, but voter 1 asks too"
    assert replica.deadline_ms == 2501
    replica.tick(2501)
    assert isinstance(replica.role, Candidate), "voter 1 did not go on"


def test_prospective_replica_with_the_lower_id_goes_on() -> None:
    replica = replica_of_three(1, election=ElectionState(2, 3))
    asked = {each.destination.id: each for each in sent_in(replica.tick(2000))}
    ask(replica, pre_vote_of(2, to=1), now_ms=2001)
    replica.received(2, asked[2].correlation, vote_answer(2), 2002)
    assert isinstance(replica.role, Candidate)


def pre_vote_of(node_id: int, to: int) -> VoteRequest:
    partition = VoteRequestPartitionData(
        replica_epoch=2, replica_id=node_id, replica_directory_id=key(node_id).directory_id, pre_vote=True
    )
    topic = VoteRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return VoteRequest(cluster_id="cluster", voter_id=to, topics=[topic])
