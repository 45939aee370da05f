"""What several assignors ask of members and topics: their orders, and whether racks matter."""

from __future__ import annotations

import pytest

from ottla.client_core.group.assignors.base import MemberSubscription
from ottla.client_core.group.assignors.members import are_racks_useful, in_hash_order, in_member_order, subscribed_topics

EAST, WEST, BOTH, NONE = frozenset({"east"}), frozenset({"west"}), frozenset({"east", "west"}), frozenset[str]()


def test_hash_order_does_not_depend_on_the_order_of_joining() -> None:
    members = [MemberSubscription(member_id, ()) for member_id in ("b", "a", "p")]
    assert [member.member_id for member in in_hash_order(members)] == ["p", "a", "b"]
    assert in_hash_order(members[::-1]) == in_hash_order(members)


def test_static_members_come_first_by_their_instance_ids() -> None:
    members = [
        MemberSubscription("a", ()),
        MemberSubscription("z", (), group_instance_id="1"),
        MemberSubscription("y", (), group_instance_id="2"),
        MemberSubscription("B", ()),
    ]
    assert [member.member_id for member in in_member_order(members)] == ["z", "y", "B", "a"]


def test_subscribed_topics_are_those_that_are_wanted_and_have_partitions() -> None:
    members = [MemberSubscription("m", ("b", "unknown", "empty")), MemberSubscription("n", ("p", "b"))]
    topics = {"b": [NONE], "p": [NONE], "empty": [], "unwanted": [NONE]}
    assert subscribed_topics(members, topics) == ["p", "b"], "in hash order"


@pytest.mark.parametrize(
    ("member_racks", "partitions", "are_useful"),
    [
        ({"east"}, [EAST, WEST], True),
        ({"east"}, [BOTH, BOTH], False),
        ({"east"}, [BOTH, WEST], True),
        ({"north"}, [EAST, WEST], False),
        (set(), [EAST, WEST], False),
        ({"east"}, [NONE, NONE], False),
        ({"east"}, [EAST, NONE], True),
        ({"east"}, [], False),
    ],
)
def test_racks_are_useful_if_they_tell_partitions_apart(
    member_racks: set[str], partitions: list[frozenset[str]], are_useful: bool
) -> None:
    assert are_racks_useful(member_racks, partitions) is are_useful
