"""The follower's votes and its durable election."""

from tests.support.raft.replicas import key

from ottla.raft.election import ElectionState
from ottla.raft.roles.follower import Follower


def test_pre_votes_only_before_the_first_fetch_and_never_a_vote() -> None:
    follower = Follower(3, 2, {}, voted=key(2))
    assert follower.grants(key(1), True, True)
    assert not follower.grants(key(1), False, True)
    assert not follower.grants(key(1), True, False)
    assert not follower._replace(has_fetched=True).grants(key(1), True, True)
    assert follower.election == ElectionState(3, 2, key(2))
