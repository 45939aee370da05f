"""The round robin assignor: partitions in order, dealt to members in turn."""

from __future__ import annotations

from ottla.client_core.group.assignors import MemberSubscription, RoundRobinAssignor

NONE = frozenset[str]()


def test_partitions_of_all_topics_are_dealt_in_turn() -> None:
    members = [MemberSubscription("b", ("t", "u")), MemberSubscription("a", ("t", "u"))]
    assigned = RoundRobinAssignor().assign(members, {"u": [NONE] * 3, "t": [NONE] * 3})
    assert assigned == {"a": [("t", 0), ("t", 2), ("u", 1)], "b": [("t", 1), ("u", 0), ("u", 2)]}


def test_member_that_does_not_subscribe_is_passed_over() -> None:
    members = [MemberSubscription("a", ("t",)), MemberSubscription("b", ("t", "u")), MemberSubscription("c", ("u",))]
    assigned = RoundRobinAssignor().assign(members, {"t": [NONE] * 3, "u": [NONE] * 3})
    assert assigned == {"a": [("t", 0), ("t", 2)], "b": [("t", 1), ("u", 0), ("u", 2)], "c": [("u", 1)]}


def test_static_member_has_the_first_turn() -> None:
    members = [MemberSubscription("a", ("t",)), MemberSubscription("z", ("t",), group_instance_id="i")]
    assert RoundRobinAssignor().assign(members, {"t": [NONE]}) == {"z": [("t", 0)], "a": []}


def test_topics_without_partitions_or_subscribers_are_left_out() -> None:
    members = [MemberSubscription("a", ("t", "unknown", "empty")), MemberSubscription("b", ())]
    topics = {"t": [NONE], "empty": [], "unwanted": [NONE]}
    assert RoundRobinAssignor().assign(members, topics) == {"a": [("t", 0)], "b": []}
