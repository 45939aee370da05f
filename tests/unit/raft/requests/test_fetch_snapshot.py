"""FetchSnapshot at the leader and at the follower."""

import pytest
from tests.support.raft.memory_log import Entry
from tests.support.raft.replicas import answer_in, ask, elected, replica_of_three

from ottla.errors.codes import ErrorCode
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica
from ottla.raft.requests import fetch_snapshot
from ottla.raft.roles.follower import Follower, SnapshotFetch
from ottla.raft.snapshots import SnapshotId
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest

WANTED = SnapshotId(7, 1)


def asked(epoch: int = 2, wanted: SnapshotId = WANTED, position: int = 0) -> FetchSnapshotRequest:
    follower = replica_of_three(2, election=ElectionState(epoch, 1))
    return fetch_snapshot.build(follower, SnapshotFetch(wanted, position))


def leading() -> Replica:
    replica = elected(epochs=(1,))
    replica.log.snapshots[WANTED] = [Entry(1, number) for number in range(5)]  # type: ignore[attr-defined]
    return replica


def test_leader_answers_with_a_piece() -> None:
    (effect,) = ask(leading(), asked(position=2), now_ms=5000)
    assert isinstance(effect, fx.AnswerWithSnapshot)
    assert (effect.snapshot_id, effect.position) == (WANTED, 2)
    told = effect.message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (told.size, told.position, told.snapshot_id.end_offset, told.snapshot_id.epoch) == (5, 2, 7, 1)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (asked(epoch=1), ErrorCode.FENCED_LEADER_EPOCH),
        (asked(epoch=3), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (asked(wanted=SnapshotId(8, 1)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (asked(wanted=SnapshotId(0, 0)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (asked(position=5), ErrorCode.POSITION_OUT_OF_RANGE),
        (asked(position=-1), ErrorCode.POSITION_OUT_OF_RANGE),
    ],
)
def test_refusals(message: FetchSnapshotRequest, code: int) -> None:
    assert answer_in(ask(leading(), message, now_ms=5000)).topics[0].partitions[0].error_code == code


def test_other_partitions_are_unknown() -> None:
    message = asked()
    message.topics[0].partitions[0].partition = 1
    assert answer_in(ask(leading(), message)).topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_pieces_are_stored_in_order_and_the_last_completes_the_snapshot() -> None:
    leader = leading()
    (effect,) = ask(leader, asked(position=2), now_ms=5000)
    response = answer_in([effect])
    response.topics[0].partitions[0].unaligned_records = [Entry(1, 2), Entry(1, 3), Entry(1, 4)]
    replica = replica_of_three(2, election=ElectionState(2, 1))
    sent = replica.connections._in_flight[1]
    assert isinstance(replica.role, Follower)
    replica.set_role(replica.role._replace(snapshot=SnapshotFetch(WANTED, 2)))
    assert fetch_snapshot.answered(replica, sent, response, 10)
    (stored,) = replica.effects
    assert stored == fx.StoreSnapshot(WANTED, 2, response.topics[0].partitions[0].unaligned_records, True)
    assert isinstance(replica.role, Follower)
    assert replica.role.snapshot is None


def test_snapshot_that_is_gone_is_given_up() -> None:
    response = answer_in(ask(leading(), asked(wanted=SnapshotId(8, 1)), now_ms=5000))
    replica = replica_of_three(2, election=ElectionState(2, 1))
    sent = replica.connections._in_flight[1]
    assert isinstance(replica.role, Follower)
    replica.set_role(replica.role._replace(snapshot=SnapshotFetch(SnapshotId(8, 1))))
    assert fetch_snapshot.answered(replica, sent, response, 10)
    assert isinstance(replica.role, Follower)
    assert replica.role.snapshot is None
