"""Replay of offset records and markers, at every prefix of the log."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.shards.offsets_shard import LoggedRecord, OffsetsBench

from ottla.coordinator.contract import CoordinatorRecord, Producer
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.wire.log_records import LogRecord
from ottla.wire.messages.offset_records import LegacyOffsetCommitKey, LegacyOffsetCommitValue

HOUR_MS = 3_600_000
SETTINGS = GroupSettings(offsets_retention_ms=10 * HOUR_MS, offsets_retention_check_interval_ms=HOUR_MS)
P = Producer(7, 0)


def test_the_offset_written_later_wins() -> None:
    bench = OffsetsBench()
    bench.commit_in_transaction(P, {("t", 0): 5, ("t", 1): 5})
    bench.commit({("t", 0): 9})
    bench.end(P, True)
    assert bench.fetch(None) == {("t", 0): 9, ("t", 1): 5}


def test_a_marker_without_pending_offsets_changes_nothing() -> None:
    bench = OffsetsBench()
    bench.end(P, True)
    assert bench.state() == ({}, {}, [])


def test_an_aborted_transaction_leaves_an_empty_group() -> None:
    """As in Apache Kafka, the next check removes the group."""
    bench = OffsetsBench(SETTINGS)
    bench.commit_in_transaction(P, {("t", 0): 5})
    bench.end(P, False)
    assert bench.state() == ({}, {}, ["g"])
    bench.advance(HOUR_MS)
    assert bench.state() == ({}, {}, [])


def test_offsets_with_keys_of_type_0_are_read() -> None:
    bench = OffsetsBench()
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=2)
    value = LegacyOffsetCommitValue(offset=77, metadata="old", commit_timestamp=5)
    bench.offsets.replay(CoordinatorRecord(key, LogRecord(value, 0)), 3, None)
    ((place, committed),) = bench.state()[0].items()
    assert place == ("g", "t", 2)
    assert committed[:6] == (3, 77, -1, "old", 5, -1)
    bench.offsets.replay(CoordinatorRecord(key, None), 4, None)
    assert bench.state()[0] == {}


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


def take_step(bench: OffsetsBench, model: Model, step: tuple[Any, ...]) -> None:
    what, *how = step
    if what == "commit":
        bench.commit(how[1], group_id=how[0])
        model.take(model.committed, how[0], how[1])
    elif what == "transact":
        bench.commit_in_transaction(how[1], how[2], group_id=how[0])
        model.take(model.pending.setdefault(how[1].id, {}), how[0], how[2])
    elif what == "end":
        bench.end(how[0], how[1])
        model.end(how[0].id, how[1])
    elif what == "wait":
        before = set(bench.state()[0])
        bench.advance(how[0] * HOUR_MS)
        for place in before - set(bench.state()[0]):  # test_expiry.py tests when they expire
            model.committed.pop(place)
    elif what == "forget topic" or how[0] in bench.table.by_id:
        take_away(bench, model, what, how)


def take_away(bench: OffsetsBench, model: Model, what: str, how: list[Any]) -> None:
    if what == "delete":
        bench.delete(how[1], group_id=how[0])
        gone = [(how[0], *each) for each in how[1]]
    elif what == "delete group":
        bench.delete_group(how[0])
        gone = [place for place in model.places() if place[0] == how[0]]
    else:
        topic_id = bench.table.topics.id_of(how[0])
        assert topic_id is not None
        bench.submit(bench.offsets.forget_topics([DeletedTopic(how[0], topic_id)]))
        gone = [place for place in model.places() if place[1] == how[0]]
    for place in gone:
        model.drop(place)


def check(bench: OffsetsBench, model: Model) -> None:
    committed, pending, _ = bench.state()
    assert {place: each.offset for place, each in committed.items()} == {
        place: offset for place, (offset, _) in model.committed.items()
    }
    assert {key: each.offset for key, each in pending.items()} == {
        (producer_id, place): offset for producer_id, each in model.pending.items() for place, (offset, _) in each.items()
    }
    for place in {place for _, place in pending} | set(committed):
        assert bench.offsets.pending.has(place) == any(place == other for _, other in pending)


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, min_size=12, max_size=30))
def test_loading_the_log_gives_the_state_of_any_history(story: list[tuple[Any, ...]]) -> None:
    bench, model = OffsetsBench(SETTINGS), Model()
    states = [bench.state()]
    lengths = [0]
    for step in story:
        take_step(bench, model, step)
        check(bench, model)
        states.append(bench.state())
        lengths.append(len(bench.log))
    for length, state in zip(lengths, states, strict=True):
        prefix: list[LoggedRecord] = bench.log[:length]
        assert OffsetsBench(SETTINGS, prefix).state() == state
