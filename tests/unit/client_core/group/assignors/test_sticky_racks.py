"""The racks of a sticky group: who shares one with which replicas."""

from __future__ import annotations

from ottla.client_core.group.assignors import MemberSubscription
from ottla.client_core.group.sticky import Racks
from ottla.ids import TopicPartition

EAST, WEST, BOTH, NONE = frozenset({"east"}), frozenset({"west"}), frozenset({"east", "west"}), frozenset[str]()
T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
MEMBERS = [
    MemberSubscription("a", ("t",), rack="east"),
    MemberSubscription("b", ("t",), rack="east"),
    MemberSubscription("c", ("t",), rack="west"),
    MemberSubscription("d", ("t",)),
]


def test_member_outside_a_partitions_racks_mismatches() -> None:
    racks = Racks(MEMBERS, {"t": [EAST, WEST, NONE]})
    assert not racks.mismatch("a", T0)
    assert racks.mismatch("a", T1)
    assert racks.mismatch("a", T2)
    assert not racks.mismatch("d", T1), "a member without a rack fits everywhere"


def test_racks_that_decide_nothing_are_dropped() -> None:
    racks = Racks(MEMBERS, {"t": [BOTH, BOTH]})
    assert racks.of_member == {}
    assert not racks.mismatch("a", T0)
    assert racks.in_order_of_choice([T1, T0]) == [T1, T0]


def test_empty_rack_is_none() -> None:
    members = [MemberSubscription("a", ("t",), rack=""), MemberSubscription("b", ("t",), rack="west")]
    assert Racks(members, {"t": [EAST, WEST]}).of_member == {"b": "west"}


def test_partitions_with_the_fewest_members_nearby_come_first() -> None:
    racks = Racks(MEMBERS, {"t": [BOTH, EAST, WEST]})
    assert racks.in_order_of_choice([T0, T1, T2]) == [T2, T1, T0]


def test_next_member_goes_round_from_the_start() -> None:
    racks = Racks(MEMBERS, {"t": [EAST, WEST, frozenset({"north"})]})
    order = ["a", "c", "b", "d"]
    assert racks.next_member(T0, order, 0) == 0
    assert racks.next_member(T0, order, 1) == 2
    assert racks.next_member(T0, order, 3) == 0
    assert racks.next_member(T2, order, 0) == -1
    assert racks.next_member(T0, [], 0) == -1
