"""The sticky assignment of members with different subscriptions: kept where balanced, moved where not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group.assignors import Assignment, MemberSubscription, in_hash_order, subscribed_topics
from ottla.client_core.group.sticky import GeneralAssignment, History, Racks, settle
from ottla.ids import TopicPartition

EAST, WEST, NONE = frozenset({"east"}), frozenset({"west"}), frozenset[str]()
T0, T1, T2, T3 = (TopicPartition("t", index) for index in range(4))
U0, U1 = (TopicPartition("u", index) for index in range(2))


def general(members: list[MemberSubscription], topics: dict[str, list[frozenset[str]]]) -> Assignment:
    members = in_hash_order(members)
    topics = {topic: topics[topic] for topic in subscribed_topics(members, topics)}
    histories = {member.member_id: History(member.owned, member.generation) for member in members}
    ownership = settle(members, histories, topics)
    return GeneralAssignment(members, ownership, histories, topics, Racks(members, topics)).run()


def test_topics_with_the_fewest_subscribers_are_assigned_first() -> None:
    members = [MemberSubscription("a", ("t", "u")), MemberSubscription("b", ("t",))]
    assigned = general(members, {"t": [NONE] * 2, "u": [NONE] * 2})
    assert assigned == {"a": [U0, U1], "b": [T0, T1]}


def test_balanced_members_keep_what_they_own() -> None:
    members = [MemberSubscription("a", ("t", "u"), (T1, U0), 4), MemberSubscription("b", ("t",), (T0, T2), 4)]
    assigned = general(members, {"t": [NONE] * 3, "u": [NONE]})
    assert {member_id: set(given) for member_id, given in assigned.items()} == {"a": {T1, U0}, "b": {T0, T2}}


def test_partition_moves_to_a_member_with_two_fewer() -> None:
    members = [MemberSubscription("a", ("t", "u"), (T0, T1, T2, T3), 4), MemberSubscription("b", ("t",))]
    assigned = general(members, {"t": [NONE] * 4, "u": [NONE]})
    assert U0 in assigned["a"], "only it can have it"
    assert sorted(map(len, assigned.values())) == [2, 3]


def test_topic_that_the_owner_no_longer_wants_goes_to_another() -> None:
    members = [MemberSubscription("a", ("u",), (T0, U0), 4), MemberSubscription("b", ("t", "u"), (T1,), 4)]
    assigned = general(members, {"t": [NONE] * 2, "u": [NONE]})
    assert {member_id: set(given) for member_id, given in assigned.items()} == {"a": {U0}, "b": {T0, T1}}


def test_previous_owner_that_unsubscribed_does_not_get_the_topic_back() -> None:
    members = [
        MemberSubscription("a", ("u",), (T0, T1, T2), 3),
        MemberSubscription("b", ("t",), (T0, T1, T2, T3), 4),
        MemberSubscription("c", ("t", "u")),
    ]
    assigned = general(members, {"t": [NONE] * 4, "u": [NONE]})
    assert {partition.topic for partition in assigned["a"]} <= {"u"}


def test_member_without_topics_gets_nothing() -> None:
    assigned = general([MemberSubscription("a", ()), MemberSubscription("b", ("t",))], {"t": [NONE]})
    assert assigned == {"a": [], "b": [T0]}


def test_new_partition_goes_to_a_member_in_its_rack() -> None:
    members = [
        MemberSubscription("a", ("t",), rack="east"),
        MemberSubscription("b", ("t", "u"), rack="west"),
    ]
    assigned = general(members, {"t": [WEST, EAST], "u": [frozenset({"west", "east"})]})
    assert T1 in assigned["a"]
    assert U0 in assigned["b"]


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[MemberSubscription], dict[str, list[frozenset[str]]]]:
    topics = {name: [NONE] * draw(st.integers(1, 5)) for name in ("t", "u", "v")}
    every = [TopicPartition(name, index) for name, partitions in topics.items() for index in range(len(partitions))]
    members = []
    for number in range(draw(st.integers(1, 5))):
        wanted = tuple(draw(st.lists(st.sampled_from(["t", "u", "v"]), unique=True)))
        owned = tuple(draw(st.lists(st.sampled_from(every), unique=True)))
        members.append(MemberSubscription(f"m{number}", wanted, owned, draw(st.integers(3, 5))))
    return members, topics


@given(groups())
def test_every_wanted_partition_has_one_owner_that_subscribes(
    group: tuple[list[MemberSubscription], dict[str, list[frozenset[str]]]],
) -> None:
    members, topics = group
    assigned = general(members, topics)
    wanted = {member.member_id: member.topics for member in members}
    owned = [partition for given in assigned.values() for partition in given]
    expected = [
        TopicPartition(name, i) for name in {t for each in wanted.values() for t in each} for i in range(len(topics[name]))
    ]
    assert sorted(owned) == sorted(expected)
    assert all(partition.topic in wanted[member_id] for member_id, given in assigned.items() for partition in given)
