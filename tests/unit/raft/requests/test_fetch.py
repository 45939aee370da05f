"""Fetch at the leader and at the follower: answers, parking, divergence, acknowledgement."""

import pytest
from tests.support.raft.memory_log import Entry
from tests.support.raft.replicas import answer_in, ask, carry_out, elected, key, replica_of_three, sent_in

from ottla.errors import BrokenInvariant
from ottla.errors.codes import ErrorCode
from ottla.ids import METADATA_TOPIC_ID
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica
from ottla.raft.requests import fetch
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.snapshots import SnapshotId
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from ottla.wire.messages.fetch import SnapshotId as WireSnapshotId
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest


def request(
    offset: int,
    epoch: int,
    last: int,
    sender: int = 2,
    high_watermark: int = 1 << 62,
    wait_ms: int = 500,
    cluster: str = "cluster",
) -> FetchRequest:
    partition = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last,
        replica_directory_id=key(sender).directory_id,
        high_watermark=high_watermark,
    )
    return FetchRequest(
        cluster_id=cluster,
        replica_state=ReplicaState(replica_id=sender),
        max_wait_ms=wait_ms,
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def leading(epochs: tuple[int, ...] = (1, 1)) -> Replica:
    replica = elected(epochs=epochs)
    replica.synced(replica.log.end_offset, 5000)
    return replica


def partition_of(effects: list[fx.Effect]) -> PartitionData:
    found: PartitionData = answer_in(effects).responses[0].partitions[0]
    return found


def test_records_come_at_once_and_nothing_is_parked() -> None:
    replica = leading()
    (answer,) = ask(replica, request(1, 2, 1), now_ms=5000)
    assert isinstance(answer, fx.AnswerWithRecords)
    assert answer.offset == 1


def test_high_watermark_needs_a_majority_and_a_record_of_the_epoch() -> None:
    replica = leading()
    assert replica.high_watermark is None
    ask(replica, request(2, 2, 1), now_ms=5000)
    assert replica.high_watermark is None, "voter 2 has the old records only"
    effects = ask(replica, request(3, 2, 2), now_ms=5000)
    assert fx.Committed(3) in effects
    assert replica.high_watermark == 3


def test_fetch_at_the_end_is_parked_until_records_or_the_high_watermark_move() -> None:
    replica = leading()
    assert ask(replica, request(3, 2, 2, sender=2), now_ms=5000) == [fx.Committed(3)]
    replica.log.entries.append(Entry(2, 9))  # type: ignore[attr-defined]
    effects = replica.log_changed(5001)
    assert [type(each) for each in effects] == [fx.Sync, fx.AnswerWithRecords]
    replica.synced(4, 5002)
    assert [type(each) for each in ask(replica, request(4, 2, 2, sender=3, high_watermark=3), now_ms=5003)] == [
        fx.Answer,
        fx.Committed,
    ], "the follower does not know the new high watermark"
    assert ask(replica, request(4, 2, 2, sender=3, high_watermark=4), now_ms=5004) == [], "it does now"
    assert [each for each in replica.tick(5504) if isinstance(each, fx.Answer)] != [], "the wait is over"


def test_parked_fetch_does_not_prove_that_its_sender_is_still_there() -> None:
    replica = leading()
    end_offset = replica.log.end_offset
    ask(replica, request(end_offset, 2, 2), now_ms=6000)
    replica.tick(6400)
    assert isinstance(replica.role, Leader)
    assert replica.role.check_quorum_deadline_ms == 6000 + 3000
    replica.tick(9000)
    assert not isinstance(replica.role, Leader)


def test_parked_fetch_is_refused_when_the_leader_resigns() -> None:
    replica = leading()
    ask(replica, request(3, 2, 2), now_ms=5000)
    assert partition_of(replica.stop(5001)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_diverging_log_gets_the_end_of_its_epoch() -> None:
    replica = leading((1, 1, 3, 3))
    told = partition_of(ask(replica, request(4, 4, 2), now_ms=5000))
    assert told.diverging_epoch is not None
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (1, 2)


def test_empty_follower_gets_a_snapshot() -> None:
    replica = leading((1, 1))
    replica.log.snapshots[SnapshotId(2, 1)] = []  # type: ignore[attr-defined]
    told = partition_of(ask(replica, request(0, 2, 0), now_ms=5000))
    assert told.snapshot_id is not None
    assert (told.snapshot_id.end_offset, told.snapshot_id.epoch) == (2, 1)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (request(0, 1, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (request(0, 3, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (request(-1, 2, 0), ErrorCode.INVALID_REQUEST),
        (request(0, 2, 3), ErrorCode.INVALID_REQUEST),
        (request(0, 2, 0, wait_ms=-1), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals_at_the_leader(message: FetchRequest, code: int) -> None:
    assert partition_of(ask(leading(), message, now_ms=5000)).error_code == code


def test_another_cluster_is_refused() -> None:
    told = answer_in(ask(leading(), request(0, 2, 0, cluster="other"), now_ms=5000))
    assert told.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_follower_names_the_leader_it_knows() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    told = partition_of(ask(replica, request(0, 2, 0)))
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert told.current_leader is not None
    assert told.current_leader.leader_id == 3


# -- At the follower


def response(epoch: int = 2, leader: int = 3, **fields: object) -> FetchResponse:
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch), **fields)  # type: ignore[arg-type]
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])])


def following(epochs: tuple[int, ...] = ()) -> tuple[Replica, int]:
    """A follower of voter 3, and the correlation id of its first Fetch."""
    replica = replica_of_three(epochs=epochs, election=ElectionState(2, 3))
    return replica, replica.connections._in_flight[3].correlation


def test_no_fetch_before_the_records_are_synced() -> None:
    replica, correlation = following()
    got = response(records=[Entry(2, 1)], high_watermark=1)
    effects = carry_out(replica, replica.received(3, correlation, got, 100), 100)
    assert [type(each) for each in effects] == [fx.AppendFetched, fx.Sync, fx.Committed]
    assert sent_in(replica.tick(150)) == []
    (again,) = sent_in(replica.synced(1, 160))
    assert isinstance(again.message, FetchRequest)
    asked = again.message.topics[0].partitions[0]
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.high_watermark) == (1, 2, 1)


def test_diverging_follower_truncates_and_fetches_from_there() -> None:
    replica, correlation = following((1, 1, 2))
    got = response(diverging_epoch=EpochEndOffset(epoch=1, end_offset=1))
    effects = carry_out(replica, replica.received(3, correlation, got, 100), 100)
    assert effects[0] == fx.Truncate(1)
    (again,) = sent_in(effects)
    assert again.message.topics[0].partitions[0].fetch_offset == 1  # type: ignore[attr-defined]


def test_truncating_below_the_high_watermark_breaks_an_invariant() -> None:
    replica, correlation = following((1, 1, 2))
    replica.high_watermark = 2
    with pytest.raises(BrokenInvariant, match="committed records would be lost"):
        replica.received(3, correlation, response(diverging_epoch=EpochEndOffset(epoch=1, end_offset=1)), 100)


@pytest.mark.parametrize(
    ("wanted", "is_loaded"), [((2, 1), False), ((3, 2), False), ((4, 1), True), ((3, 3), True), ((3, 1), True)]
)
def test_snapshot_that_the_log_covers_is_not_loaded(wanted: tuple[int, int], is_loaded: bool) -> None:
    replica, correlation = following((1, 1, 2))
    snapshot_id = WireSnapshotId(end_offset=wanted[0], epoch=wanted[1])
    replica.received(3, correlation, response(snapshot_id=snapshot_id), 100)
    assert isinstance(replica.role, Follower)
    assert (replica.role.snapshot is not None) is is_loaded


@pytest.mark.parametrize("is_stored", [False, True])
def test_snapshot_replaces_a_log_that_diverges_exactly_at_its_end(is_stored: bool) -> None:
    """The record of epoch 2 was never committed: the leader's log has one of epoch 1 there, and starts behind it."""
    replica, correlation = following((1, 1, 2))
    wanted = SnapshotId(3, 1)
    if is_stored:  # and the node was killed before the log was replaced
        replica.log.snapshots[wanted] = []  # type: ignore[attr-defined]  # the test's log
    got = response(snapshot_id=WireSnapshotId(end_offset=3, epoch=1))
    (asked,) = sent_in(replica.received(3, correlation, got, 100))
    assert isinstance(asked.message, FetchSnapshotRequest)
    assert (replica.log.end_offset, replica.log.last_epoch) == (3, 2), "the log is replaced when the snapshot is complete"


def test_follower_with_a_part_of_the_committed_records_has_not_caught_up() -> None:
    replica, correlation = following()
    assert not replica.has_caught_up(0)
    carry_out(replica, replica.received(3, correlation, response(records=[Entry(2, 1)], high_watermark=2), 100), 100)
    assert replica.high_watermark == 1
    assert not replica.has_caught_up(1), "the leader has told of one more"
    assert replica.has_caught_up(2)


@pytest.mark.parametrize(("told", "enough"), [(5, 5), (3, 3), (-1, None)])
def test_follower_with_a_fetched_snapshot_lacks_what_is_committed_after_it(told: int, enough: int | None) -> None:
    replica, correlation = following()
    got = response(snapshot_id=WireSnapshotId(end_offset=3, epoch=1), high_watermark=told)
    replica.received(3, correlation, got, 100)
    replica.log.start_at_snapshot(SnapshotId(3, 1))  # type: ignore[attr-defined]  # the test's log
    replica.snapshot_loaded()
    replica.log_changed(110)
    assert replica.high_watermark == 3
    assert [end_offset for end_offset in range(3, 10) if replica.has_caught_up(end_offset)][:1] == (
        [] if enough is None else [enough]
    )


def test_build_names_this_replica() -> None:
    replica, _ = following((1,))
    built = fetch.build(replica)
    assert built.replica_state is not None
    assert built.replica_state.replica_id == 1
    assert built.topics[0].partitions[0].current_leader_epoch == 2
    assert isinstance(replica.role, Follower)
