"""Replay of offset records and markers, at every prefix of the log."""

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.shards.consumer_harness import ConsumerHarness
from tests.support.shards.offsets_harness import WALL_AHEAD_MS, FixedTopics, LoggedRecord, OffsetsHarness

from ottla.coordinator.contract import Caller, CoordinatorRecord, Instant, Producer
from ottla.coordinator.groups.classic.group import STABLE, ClassicGroup
from ottla.coordinator.groups.offsets import offsets as expiry
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.log_records import LogRecord
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.offset_records import LegacyOffsetCommitKey, LegacyOffsetCommitValue

HOUR_MS = 3_600_000
SETTINGS = GroupSettings(offsets_retention_ms=10 * HOUR_MS, offsets_retention_check_interval_ms=HOUR_MS)
P = Producer(7, 0)


def test_the_offset_written_later_wins() -> None:
    harness = OffsetsHarness()
    harness.commit_in_transaction(P, {("t", 0): 5, ("t", 1): 5})
    harness.commit({("t", 0): 9})
    harness.end(P, True)
    assert harness.fetch(None) == {("t", 0): 9, ("t", 1): 5}


def test_a_marker_without_pending_offsets_changes_nothing() -> None:
    harness = OffsetsHarness()
    harness.end(P, True)
    assert harness.state() == ({}, {}, [])


def test_an_aborted_transaction_leaves_an_empty_group() -> None:
    """As in Apache Kafka, the next check removes the group."""
    harness = OffsetsHarness(SETTINGS)
    harness.commit_in_transaction(P, {("t", 0): 5})
    harness.end(P, False)
    assert harness.state() == ({}, {}, ["g"])
    harness.advance(HOUR_MS)
    assert harness.state() == ({}, {}, [])


def test_offsets_with_keys_of_type_0_are_read() -> None:
    harness = OffsetsHarness()
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=2)
    value = LegacyOffsetCommitValue(offset=77, metadata="old", commit_timestamp=5)
    harness.offsets.replay(CoordinatorRecord(key, LogRecord(value, 0)), 3, None)
    ((place, committed),) = harness.state()[0].items()
    assert place == ("g", "t", 2)
    assert committed[:6] == (3, 77, -1, "old", 5, -1)
    harness.offsets.replay(CoordinatorRecord(key, None), 4, None)
    assert harness.state()[0] == {}


groups = st.sampled_from(["g", "g", "h"])
partitions = st.sampled_from([("t", 0), ("t", 1), ("u", 0)])  # few, so that steps collide
offsets = st.dictionaries(partitions, st.integers(0, 999), min_size=1, max_size=3)
producers = st.builds(Producer, st.sampled_from([7, 7, 8]), st.just(0))
commits = st.tuples(st.just("commit"), groups, offsets)
transactions = st.tuples(st.just("transact"), groups, producers, offsets)
ends = st.tuples(st.just("end"), producers, st.sampled_from([True, True, False]))
rare = st.one_of(
    st.tuples(st.just("delete"), groups, st.lists(partitions, min_size=1, max_size=3)),
    st.tuples(st.just("delete group"), groups),
    st.tuples(st.just("forget topic"), st.sampled_from(["t", "u"])),
    st.tuples(st.just("wait"), st.integers(1, 8)),
)
steps = st.sampled_from([commits, transactions, ends, commits, transactions, ends, rare]).flatmap(lambda kind: kind)


class Model:
    """A plain model of offsets: the committed ones, and those of every open transaction."""

    def __init__(self) -> None:
        self.committed: dict[Any, tuple[int, int]] = {}  # offset, and the order of its commit
        self.pending: dict[int, dict[Any, tuple[int, int]]] = {}
        self.clock = 0

    def take(self, into: dict[Any, tuple[int, int]], group_id: str, wanted: dict[tuple[str, int], int]) -> None:
        for (topic, index), offset in wanted.items():
            self.clock += 1
            into[group_id, topic, index] = (offset, self.clock)

    def drop(self, place: Any) -> None:
        for each in (self.committed, *self.pending.values()):
            each.pop(place, None)

    def end(self, producer_id: int, is_commit: bool) -> None:
        for place, said in self.pending.pop(producer_id, {}).items():
            if is_commit and said[1] > self.committed.get(place, (0, 0))[1]:
                self.committed[place] = said

    def places(self) -> list[Any]:
        return [place for each in (self.committed, *self.pending.values()) for place in each]


def take_step(harness: OffsetsHarness, model: Model, step: tuple[Any, ...]) -> None:
    what, *how = step
    if what == "commit":
        harness.commit(how[1], group_id=how[0])
        model.take(model.committed, how[0], how[1])
    elif what == "transact":
        harness.commit_in_transaction(how[1], how[2], group_id=how[0])
        model.take(model.pending.setdefault(how[1].id, {}), how[0], how[2])
    elif what == "end":
        harness.end(how[0], how[1])
        model.end(how[0].id, how[1])
    elif what == "wait":
        before = set(harness.state()[0])
        harness.advance(how[0] * HOUR_MS)
        for place in before - set(harness.state()[0]):  # test_expiry.py tests when they expire
            model.committed.pop(place)
    elif what == "forget topic" or how[0] in harness.table.by_id:
        take_away(harness, model, what, how)


def take_away(harness: OffsetsHarness, model: Model, what: str, how: list[Any]) -> None:
    if what == "delete":
        harness.delete(how[1], group_id=how[0])
        gone = [(how[0], *each) for each in how[1]]
    elif what == "delete group":
        harness.delete_group(how[0])
        gone = [place for place in model.places() if place[0] == how[0]]
    else:
        topic_id = harness.table.topics.id_of(how[0])
        assert topic_id is not None
        harness.submit(harness.offsets.forget_topics([DeletedTopic(how[0], topic_id)]))
        gone = [place for place in model.places() if place[1] == how[0]]
    for place in gone:
        model.drop(place)


def check(harness: OffsetsHarness, model: Model) -> None:
    committed, pending, _ = harness.state()
    assert {place: each.offset for place, each in committed.items()} == {
        place: offset for place, (offset, _) in model.committed.items()
    }
    assert {key: each.offset for key, each in pending.items()} == {
        (producer_id, place): offset for producer_id, each in model.pending.items() for place, (offset, _) in each.items()
    }
    for place in {place for _, place in pending} | set(committed):
        assert harness.offsets.pending.has(place) == any(place == other for _, other in pending)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(steps, min_size=12, max_size=30))
def test_loading_the_log_gives_the_state_of_any_history(story: list[tuple[Any, ...]]) -> None:
    harness, model = OffsetsHarness(SETTINGS), Model()
    states = [harness.state()]
    lengths = [0]
    for step in story:
        take_step(harness, model, step)
        check(harness, model)
        states.append(harness.state())
        lengths.append(len(harness.log))
    for length, state in zip(lengths, states, strict=True):
        prefix: list[LoggedRecord] = harness.log[:length]
        assert OffsetsHarness(SETTINGS, prefix).state() == state


# OffsetFetch, decided without a log.

UNSTABLE = -1000 - ErrorCode.UNSTABLE_OFFSET_COMMIT


class Members(ClassicGroup):
    """A group in which only one member may fetch."""

    __slots__ = ()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if (member_id, member_epoch) != ("m", 5):
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "no")


def test_a_missing_offset_is_minus_one() -> None:
    harness = OffsetsHarness()
    assert harness.fetch({"t": [0, 9], "absent": [0]}) == {("t", 0): -1, ("t", 9): -1, ("absent", 0): -1}
    assert harness.fetch(None) == {}
    harness.commit({("t", 0): 3})
    assert harness.fetch({"t": [0, 1]}) == {("t", 0): 3, ("t", 1): -1}
    assert harness.fetch(None, group_id="other") == {}


def test_leader_epoch_and_metadata_are_returned() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3}, metadata="noted")
    wanted = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])])
    there, absent = harness.offsets.fetch(wanted, False, 9).topics[0].partitions
    assert (there.committed_offset, there.committed_leader_epoch, there.metadata) == (3, 3, "noted")
    assert (absent.committed_offset, absent.committed_leader_epoch, absent.metadata) == (-1, -1, "")


def test_unstable_until_the_transaction_ends() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3})
    harness.commit_in_transaction(P, {("t", 0): 9, ("t", 1): 9})
    assert harness.fetch({"t": [0, 1, 2]}, require_stable=True) == {("t", 0): UNSTABLE, ("t", 1): UNSTABLE, ("t", 2): -1}
    assert harness.fetch(None, require_stable=True) == {("t", 0): UNSTABLE}
    assert harness.fetch({"t": [0, 1]}) == {("t", 0): 3, ("t", 1): -1}
    harness.end(P, False)
    assert harness.fetch({"t": [0, 1]}, require_stable=True) == {("t", 0): 3, ("t", 1): -1}


def test_two_transactions_at_once() -> None:
    harness = OffsetsHarness()
    other = Producer(8, 0)
    harness.commit_in_transaction(P, {("t", 0): 1})
    harness.commit_in_transaction(other, {("t", 0): 2})
    harness.end(P, True)
    assert harness.fetch({"t": [0]}, require_stable=True) == {("t", 0): UNSTABLE}
    harness.end(other, True)
    assert harness.fetch({"t": [0]}, require_stable=True) == {("t", 0): 2}


def test_by_topic_id() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3, ("u", 1): 4})
    known, unknown = harness.table.topics.id_of("t"), Uuid(b"\x09" * 16)
    assert known is not None
    wanted = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in (known, unknown)]
    answer = harness.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=wanted), False, 10)
    assert [(topic.topic_id, topic.partitions[0].committed_offset) for topic in answer.topics] == [(known, 3), (unknown, -1)]
    assert answer.topics[1].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_fetching_all_by_topic_id_omits_deleted_topics() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3, ("u", 1): 4})
    harness.table.topics = FixedTopics({"u": 2})
    assert harness.fetch(None, version=10) == {("u", 1): 4}
    assert harness.fetch(None, version=9) == {("t", 0): 3, ("u", 1): 4}


def test_offsets_of_a_former_topic_of_the_name_are_not_returned() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 3})
    harness.commit_in_transaction(P, {("t", 1): 5})
    harness.end(P, True)
    harness.table.topics = FixedTopics({"t": 4}, first_id=50)
    topic_id = harness.table.topics.id_of("t")
    assert topic_id is not None
    wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 1])]
    answer = harness.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=wanted), False, 10)
    # An offset of a transaction has no topic id: it is returned.
    assert [each.committed_offset for each in answer.topics[0].partitions] == [-1, 5]
    assert harness.fetch({"t": [0]}, version=9) == {("t", 0): 3}


def test_a_stale_member_cannot_fetch() -> None:
    harness = OffsetsHarness()
    harness.put_group(Members("g"))
    assert harness.fetch({"t": [0]}, member_id="m", member_epoch=5) == {("t", 0): -1}
    with pytest.raises(KafkaError):
        harness.fetch({"t": [0]}, member_id="m", member_epoch=4)


# Deletion of offsets: on request, with their group, with their topic.


def stable_group(protocol_type: str, *subscribed: str) -> ClassicGroup:
    group = ClassicGroup("g")
    group.protocol_type = protocol_type
    group.subscribed = frozenset(subscribed)
    group.move_to(STABLE, Instant(0, 0))
    return group


def test_offsets_are_deleted() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1, ("t", 1): 2, ("u", 0): 3})
    written = len(harness.log)
    codes = harness.delete([("t", 0), ("t", 2), ("t", 7), ("absent", 0)])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 0): 0, ("t", 2): 0, ("t", 7): unknown, ("absent", 0): unknown}
    assert len(harness.log) == written + 1, "what was never committed needs no tombstone"
    assert harness.fetch(None) == {("t", 1): 2, ("u", 0): 3}


def test_offsets_are_not_deleted_while_members_read_the_topic() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1, ("u", 0): 3})
    harness.put_group(stable_group("consumer", "t"))
    assert harness.delete([("t", 0), ("u", 0)]) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): 0}
    assert harness.fetch(None) == {("t", 0): 1}


def test_offsets_are_not_deleted_while_subscriptions_are_unknown() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1})
    harness.put_group(stable_group("connect"))
    with pytest.raises(KafkaError) as refused:
        harness.delete([("t", 0)])
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_an_unknown_group_cannot_be_deleted() -> None:
    harness = OffsetsHarness()
    with pytest.raises(KafkaError) as refused:
        harness.delete([("t", 0)])
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_open_transactions_are_deleted_too() -> None:
    harness = OffsetsHarness()
    harness.commit_in_transaction(P, {("t", 0): 1, ("t", 1): 1})
    harness.delete([("t", 0)])
    harness.end(P, True)
    assert harness.fetch(None) == {("t", 1): 1}


def test_deleting_a_group_deletes_its_offsets() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1})
    harness.commit({("t", 0): 2}, group_id="other")
    harness.commit_in_transaction(P, {("t", 0): 5, ("t", 1): 5})
    harness.delete_group()
    harness.end(P, True)
    assert harness.fetch(None) == {}
    assert list(harness.table.by_id) == ["other"]
    tombstones = [each for each in harness.log if each.key and each.value is None]
    assert len({each.key for each in tombstones}) == len(tombstones) == 3


def test_a_group_with_members_is_not_deleted() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1})
    harness.put_group(stable_group("consumer", "t"))
    with pytest.raises(KafkaError) as refused:
        harness.delete_group()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(KafkaError) as absent:
        harness.delete_group("absent")
    assert absent.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.fetch(None) == {("t", 0): 1}


@pytest.mark.parametrize("unread_count", [0, 3])
def test_offsets_of_a_deleted_topic_are_deleted(unread_count: int) -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1, ("u", 1): 3})
    harness.commit({("t", 0): 2}, group_id="other")
    harness.commit_in_transaction(P, {("t", 3): 5})
    topic_id = harness.table.topics.id_of("t")
    assert topic_id is not None
    unread = [DeletedTopic(f"unread {number}", Uuid(b"\x09" * 16)) for number in range(unread_count)]
    harness.submit(harness.offsets.forget_topics([DeletedTopic("t", topic_id), *unread]))
    harness.end(P, True)
    assert harness.fetch(None) == {("u", 1): 3}
    assert harness.fetch(None, group_id="other") == {}


def test_offsets_of_a_new_topic_of_the_same_name_stay() -> None:
    harness = OffsetsHarness()
    old = harness.table.topics.id_of("t")
    assert old is not None
    harness.commit({("t", 0): 1})
    harness.table.topics = FixedTopics({"t": 4}, first_id=50)
    harness.commit({("t", 1): 2})
    harness.submit(harness.offsets.forget_topics([DeletedTopic("t", old)]))
    assert harness.fetch(None) == {("t", 1): 2}


def test_a_topic_created_and_deleted_repeatedly_leaves_no_offsets() -> None:
    harness = OffsetsHarness()
    deleted = []
    for number in (1, 50, 100):
        harness.table.topics = FixedTopics({"t": 4}, first_id=number)
        topic_id = harness.table.topics.id_of("t")
        assert topic_id is not None
        harness.commit({("t", number % 3): number})
        deleted.append(DeletedTopic("t", topic_id))
    harness.submit(harness.offsets.forget_topics(deleted[:2]))
    assert harness.fetch(None) == {("t", 1): 100}
    harness.submit(harness.offsets.forget_topics(deleted))
    assert harness.fetch(None) == {}


# Expiry of offsets, and of groups without members and offsets.


def test_offsets_expire_and_their_group_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1, ("t", 1): 1})
    harness.advance(5 * HOUR_MS)
    harness.commit({("t", 1): 2})
    harness.advance(4 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1, ("t", 1): 2}
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        harness.advance(HOUR_MS)
    assert harness.fetch(None) == {("t", 1): 2}
    assert "offsets.retention.minutes" in caplog.text
    assert "group g: 1 of its offsets have expired" in caplog.text
    harness.advance(5 * HOUR_MS)
    assert harness.fetch(None) == {}
    assert not harness.table.by_id
    written = len(harness.log)
    harness.advance(100 * HOUR_MS)
    assert len(harness.log) == written


def test_offsets_of_a_consumer_group_expire_after_its_last_member_left() -> None:
    settings = SETTINGS._replace(group_consumer_session_timeout_ms=100 * HOUR_MS)
    harness = ConsumerHarness({"t": 1}, settings)
    epoch = harness.join("m").member_epoch
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
    request = OffsetCommitRequest(group_id="g", member_id="m", generation_id_or_member_epoch=epoch, topics=topics)
    caller = Caller("c", "/", 9)
    harness.ask("commit", lambda reply: harness.shard.offsets.commit(request, caller, reply, harness.now))
    offsets = harness.shard.offsets.committed
    harness.advance(20 * HOUR_MS)
    harness.heartbeat("m", -1)
    harness.advance(9 * HOUR_MS)
    assert offsets.get(("g", "t", 0)) is not None
    harness.advance(HOUR_MS)
    assert offsets.get(("g", "t", 0)) is None
    assert harness.shard.table.by_id == harness.shard.table.emptied_ms == {}


def test_a_client_may_set_the_expiry() -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1}, version=4, retention_time_ms=2 * HOUR_MS)
    harness.commit({("t", 1): 1}, version=4, retention_time_ms=50 * HOUR_MS)
    harness.advance(2 * HOUR_MS)
    assert harness.fetch(None) == {("t", 1): 1}
    harness.advance(47 * HOUR_MS)
    assert harness.fetch(None) == {("t", 1): 1}
    harness.advance(HOUR_MS)
    assert harness.fetch(None) == {}


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1, ("u", 0): 1})
    group = ClassicGroup("g")
    group.protocol_type = "consumer"
    group.subscribed = frozenset({"t"})
    group.move_to(STABLE, harness.now)
    harness.put_group(group)
    harness.advance(30 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1}
    # The retention of all offsets starts when the last member has left.
    group.subscribed = frozenset()
    group.move_to("Empty", harness.now)
    harness.advance(9 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1}
    harness.advance(HOUR_MS)
    assert harness.fetch(None) == {}
    assert not harness.table.by_id


def test_an_empty_group_without_offsets_is_removed_at_the_next_check() -> None:
    harness = OffsetsHarness(SETTINGS)
    group = ClassicGroup("g")
    group.protocol_type = "consumer"
    harness.put_group(group)
    stable = ClassicGroup("stable")
    stable.move_to(STABLE, Instant(WALL_AHEAD_MS, 0))
    harness.put_group(stable)
    harness.advance(HOUR_MS - 1)
    assert list(harness.table.by_id) == ["g", "stable"]
    harness.advance(1)
    assert list(harness.table.by_id) == ["stable"]


def test_offsets_of_an_open_transaction_do_not_expire() -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1, ("t", 1): 1})
    harness.commit_in_transaction(P, {("t", 0): 2, ("t", 2): 2})
    harness.advance(30 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1}
    assert "g" in harness.table.by_id
    harness.delete([("t", 0)])
    harness.commit_in_transaction(P, {("t", 0): 2})
    harness.advance(30 * HOUR_MS)
    assert "g" in harness.table.by_id, "a group without offsets may get some from a transaction"
    harness.end(P, False)
    harness.advance(HOUR_MS)
    assert not harness.table.by_id


def test_a_round_is_split_into_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "GROUPS_PER_TURN", 3)
    harness = OffsetsHarness(SETTINGS)
    for number in range(8):
        harness.commit({("t", 0): 1}, group_id=f"g{number}")
    harness.advance(10 * HOUR_MS - 1)
    harness.now_ms += 1
    left = []
    while (action := harness.table.timers.pop_due(harness.now)) is not None:
        harness.submit(action(harness.now))
        left.append(len(harness.table.by_id))
    assert left == [5, 2, 0]
    assert harness.table.timers.next_deadline_ms == harness.now_ms + HOUR_MS
