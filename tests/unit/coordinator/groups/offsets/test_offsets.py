"""Replay of offset records and markers, at every prefix of the log."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.shards.offsets_harness import LoggedRecord, OffsetsHarness

from ottla.coordinator.contract import CoordinatorRecord, Producer
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.wire.log_records import LogRecord
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
