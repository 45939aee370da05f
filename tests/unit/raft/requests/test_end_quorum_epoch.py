"""EndQuorumEpoch: the preferred successor stands at once, the others later."""

import pytest
from tests.support.raft.replicas import answer_in, ask, key, replica_of_three

from ottla.errors.codes import ErrorCode
from ottla.raft.election import ElectionState
from ottla.raft.requests import end_quorum_epoch
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest


def resigning(*successors: int) -> EndQuorumEpochRequest:
    leader = replica_of_three(3)
    return end_quorum_epoch.build(leader, Resigned(5, key(3), tuple(map(key, successors)), ()))


@pytest.mark.parametrize(("successors", "delay_ms"), [((2, 1), 500), ((2, 4, 1), 500), ((2,), 1000), ((), 1000)])
def test_others_wait_longer(successors: tuple[int, ...], delay_ms: int) -> None:
    replica = replica_of_three(election=ElectionState(5, 3))
    assert answer_in(ask(replica, resigning(*successors))).topics[0].partitions[0].error_code == 0
    assert isinstance(replica.role, Follower)
    assert replica.role.fetch_deadline_ms == delay_ms


def test_first_successor_stands_at_once() -> None:
    replica = replica_of_three(election=ElectionState(5, 3))
    ask(replica, resigning(1, 2))
    assert isinstance(replica.role, Prospective)


def test_an_older_epoch_is_fenced() -> None:
    replica = replica_of_three(election=ElectionState(6))
    told = answer_in(ask(replica, resigning(1))).topics[0].partitions[0]
    assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
