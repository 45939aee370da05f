"""Tests of `ottla.coordinator.groups.consumer.assignors`: equal counts, and few partitions move."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinator.groups.consumer.assignors import AssignedMember, Assignment, GroupView, assign_ranges, assign_uniformly
from ottla.ids import Uuid

TOPICS = [Uuid(bytes(15) + bytes([number])) for number in range(4)]


def view_of(counts: Mapping[Uuid, int], read: Mapping[str, frozenset[Uuid]], before: Mapping[str, Assignment]) -> GroupView:
    members = {member_id: AssignedMember(None, topics, before.get(member_id, {})) for member_id, topics in read.items()}
    return GroupView(members, len(set(read.values())) == 1, counts)


def sizes(targets: Mapping[str, Assignment]) -> list[int]:
    return [sum(map(len, target.values())) for target in targets.values()]


def held(targets: Mapping[str, Assignment]) -> list[tuple[Uuid, int]]:
    return [(topic_id, each) for target in targets.values() for topic_id, partitions in target.items() for each in partitions]


COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)


@settings(deadline=None)
@given(counts=COUNTS, first=st.integers(1, 7), then=st.integers(1, 7), grown=COUNTS)
def test_members_of_the_same_topics_differ_by_one_at_most(
    counts: dict[Uuid, int], first: int, then: int, grown: dict[Uuid, int]
) -> None:
    read = {f"m{number}": frozenset(counts) for number in range(first)}
    before = assign_uniformly(view_of(counts, read, {}))
    later = {topic_id: max(count, grown.get(topic_id, 0)) for topic_id, count in counts.items()}
    now = {f"m{number}": frozenset(later) for number in range(first - 1, first + then)}
    targets = assign_uniformly(view_of(later, now, before))
    assert set(targets) == set(now)
    assert sorted(held(targets)) == sorted((topic_id, each) for topic_id, count in later.items() for each in range(count))
    assert max(sizes(targets)) - min(sizes(targets)) <= 1
    stayed = f"m{first - 1}"
    kept = set(held({stayed: before[stayed]})) & set(held({stayed: targets[stayed]}))
    assert len(kept) == min(sizes({stayed: before[stayed]})[0], sizes({stayed: targets[stayed]})[0])


def test_no_partition_moves_without_a_change() -> None:
    counts = {TOPICS[0]: 7, TOPICS[1]: 3}
    read = {f"m{number}": frozenset(counts) for number in range(4)}
    before = assign_uniformly(view_of(counts, read, {}))
    assert assign_uniformly(view_of(counts, read, before)) == before


def test_one_more_member_takes_only_its_share() -> None:
    counts = {TOPICS[0]: 6}
    before = assign_uniformly(view_of(counts, {"a": frozenset(counts), "b": frozenset(counts)}, {}))
    after = assign_uniformly(view_of(counts, dict.fromkeys("abc", frozenset(counts)), before))
    assert sizes(after) == [2, 2, 2]
    for member_id in "ab":
        assert set(after[member_id][TOPICS[0]]) < set(before[member_id][TOPICS[0]])


@settings(deadline=None)
@given(
    counts=st.just({topic_id: number + 2 for number, topic_id in enumerate(TOPICS)}),
    read=st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from(TOPICS)), min_size=2),
    before_read=st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from(TOPICS)), min_size=2),
)
def test_overlapping_subscriptions_are_balanced_among_readers(
    counts: dict[Uuid, int], read: dict[str, frozenset[Uuid]], before_read: dict[str, frozenset[Uuid]]
) -> None:
    before = assign_uniformly(view_of({topic_id: counts[topic_id] for topic_id in _read(before_read)}, before_read, {}))
    known = {topic_id: counts[topic_id] for topic_id in _read(read)}
    targets = assign_uniformly(view_of(known, read, before))
    assert sorted(held(targets)) == sorted((topic_id, each) for topic_id, count in known.items() for each in range(count))
    for member_id, target in targets.items():
        assert set(target) <= read[member_id]
    # No member has two partitions more than another reader of one of its topics.
    size = dict(zip(targets, sizes(targets), strict=True))
    for giver, target in targets.items():
        for topic_id in target:
            assert all(size[giver] - size[taker] <= 1 for taker in read if topic_id in read[taker])


def _read(read: Mapping[str, frozenset[Uuid]]) -> set[Uuid]:
    return set().union(*read.values())


def test_members_of_different_topics_keep_their_partitions() -> None:
    counts = {TOPICS[0]: 4, TOPICS[1]: 4}
    read = {"a": frozenset(TOPICS[:1]), "b": frozenset(TOPICS[:2]), "c": frozenset(TOPICS[1:2])}
    before = assign_uniformly(view_of(counts, read, {}))
    assert assign_uniformly(view_of(counts, read, before)) == before
    assert max(sizes(before)) - min(sizes(before)) <= 1


# Tests of `ottla.coordinator.groups.consumer.assignors`: contiguous ranges, the same of every topic.

T, U = (Uuid(bytes(15) + bytes([number])) for number in (1, 2))


def _view(members: dict[str, tuple[str | None, set[Uuid]]], counts: dict[Uuid, int]) -> GroupView:
    found = {each: AssignedMember(instance_id, frozenset(topics), {}) for each, (instance_id, topics) in members.items()}
    return GroupView(found, False, counts)


def test_equal_topics_are_shared_equally() -> None:
    targets = assign_ranges(_view({"b": (None, {T, U}), "a": (None, {T, U})}, {T: 3, U: 3}))
    assert targets == {"a": {T: (0, 1), U: (0, 1)}, "b": {T: (2,), U: (2,)}}


def test_more_members_than_partitions() -> None:
    targets = assign_ranges(_view({"a": (None, {T}), "b": (None, {T}), "c": (None, {T})}, {T: 2}))
    assert targets == {"a": {T: (0,)}, "b": {T: (1,)}, "c": {}}


def test_each_topic_goes_to_its_readers() -> None:
    targets = assign_ranges(_view({"a": (None, {T}), "b": (None, {T, U}), "c": (None, set())}, {T: 4, U: 3}))
    assert targets == {"a": {T: (0, 1)}, "b": {T: (2, 3), U: (0, 1, 2)}, "c": {}}


def test_static_members_come_first_in_order_of_instance_id() -> None:
    targets = assign_ranges(_view({"a": (None, {T}), "z": ("1", {T}), "y": ("2", {T})}, {T: 3}))
    assert targets == {"z": {T: (0,)}, "y": {T: (1,)}, "a": {T: (2,)}}
