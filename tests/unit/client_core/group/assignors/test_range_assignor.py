"""The range assignor: runs of partitions per topic, one more for the first members, and racks within the same counts."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group.assignors import Assignment, MemberSubscription, RangeAssignor
from ottla.ids import TopicPartition

EAST, WEST, NONE = frozenset({"east"}), frozenset({"west"}), frozenset[str]()


def assign(members: list[MemberSubscription], topics: dict[str, list[frozenset[str]]]) -> Assignment:
    return RangeAssignor().assign(members, topics)


def test_first_members_get_one_more_of_every_topic() -> None:
    members = [MemberSubscription("b", ("t", "u")), MemberSubscription("a", ("t", "u"))]
    assigned = assign(members, {"t": [NONE] * 3, "u": [NONE] * 3})
    assert sorted(assigned["a"]) == [("t", 0), ("t", 1), ("u", 0), ("u", 1)]
    assert sorted(assigned["b"]) == [("t", 2), ("u", 2)]


def test_static_member_comes_before_dynamic_ones() -> None:
    members = [MemberSubscription("a", ("t",)), MemberSubscription("z", ("t",), group_instance_id="i")]
    assert assign(members, {"t": [NONE] * 3}) == {"z": [("t", 0), ("t", 1)], "a": [("t", 2)]}


def test_topic_is_divided_among_its_subscribers_only() -> None:
    members = [MemberSubscription("a", ("t",)), MemberSubscription("b", ("u", "unknown"))]
    assert assign(members, {"t": [NONE] * 2, "u": [NONE], "unwanted": [NONE]}) == {"a": [("t", 0), ("t", 1)], "b": [("u", 0)]}


def test_more_members_than_partitions_leaves_the_last_without() -> None:
    members = [MemberSubscription(member_id, ("t",)) for member_id in "abc"]
    assert assign(members, {"t": [NONE] * 2}) == {"a": [("t", 0)], "b": [("t", 1)], "c": []}


def test_members_get_partitions_of_their_rack_within_their_share() -> None:
    members = [MemberSubscription("a", ("t",), rack="west"), MemberSubscription("b", ("t",), rack="east")]
    assert assign(members, {"t": [EAST, EAST, WEST, WEST]}) == {"a": [("t", 2), ("t", 3)], "b": [("t", 0), ("t", 1)]}
    assert assign(members, {"t": [EAST, EAST, EAST, WEST]}) == {"a": [("t", 2), ("t", 3)], "b": [("t", 0), ("t", 1)]}


def test_racks_keep_co_partitioned_topics_together() -> None:
    members = [MemberSubscription("a", ("t", "u"), rack="west"), MemberSubscription("b", ("t", "u"), rack="east")]
    assigned = assign(members, {"t": [EAST, WEST], "u": [EAST, WEST]})
    assert assigned == {"a": [("t", 1), ("u", 1)], "b": [("t", 0), ("u", 0)]}


def test_racks_that_disagree_between_co_partitioned_topics_do_not_count() -> None:
    members = [MemberSubscription("a", ("t", "u"), rack="west"), MemberSubscription("b", ("t", "u"), rack="east")]
    assigned = assign(members, {"t": [EAST, WEST], "u": [WEST, EAST]})
    assert assigned == {"a": [("t", 0), ("u", 0)], "b": [("t", 1), ("u", 1)]}


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    racks=st.lists(st.sampled_from(["east", "west", None]), min_size=1, max_size=6),
    chance=st.randoms(use_true_random=False),
)
def test_every_partition_has_one_owner_and_shares_differ_by_one(
    counts: list[int], racks: list[str | None], chance: Random
) -> None:
    topics = {f"t{i}": [chance.choice([EAST, WEST, NONE]) for _ in range(count)] for i, count in enumerate(counts)}
    members = [MemberSubscription(f"m{i}", tuple(topics), rack=rack) for i, rack in enumerate(racks)]
    assignment = assign(members, topics)
    owned = [partition for partitions in assignment.values() for partition in partitions]
    assert sorted(owned) == sorted(TopicPartition(name, i) for name, count in topics.items() for i in range(len(count)))
    for name in topics:
        shares = [sum(partition.topic == name for partition in partitions) for partitions in assignment.values()]
        assert max(shares) - min(shares) <= 1
