"""The sticky assignment of members with the same subscription: quotas, what is kept, and what goes straight to another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group.assignors import MemberSubscription
from ottla.client_core.group.sticky import ConstrainedAssignment, Ownership, Racks
from ottla.ids import TopicPartition

EAST, WEST, NONE = frozenset({"east"}), frozenset({"west"}), frozenset[str]()
T0, T1, T2, T3 = T = tuple(TopicPartition("t", index) for index in range(4))


def constrained(
    owned: dict[str, list[TopicPartition]],
    racks: list[frozenset[str]],
    contested: set[TopicPartition] | None = None,
    **member_racks: str,
) -> ConstrainedAssignment:
    topics = {"t": racks}
    members = [MemberSubscription(member_id, ("t",), rack=member_racks.get(member_id)) for member_id in owned]
    made = ConstrainedAssignment(Ownership(owned, contested or set(), 1, True), topics, Racks(members, topics))
    made.run()
    return made


def test_new_group_is_dealt_out_in_order() -> None:
    made = constrained({"b": [], "a": []}, [NONE] * 3)
    assert made.assignment == {"a": [T0, T2], "b": [T1]}
    assert made.transferred == {}


def test_member_keeps_up_to_its_quota_and_gives_up_the_rest() -> None:
    made = constrained({"a": [T0, T1, T2, T3], "b": []}, [NONE] * 4)
    assert made.assignment == {"a": [T0, T1], "b": [T2, T3]}
    assert made.transferred == {T2: "b", T3: "b"}


def test_member_with_one_more_keeps_it_if_the_division_leaves_one_over() -> None:
    made = constrained({"a": [T0], "b": [T1, T2]}, [NONE] * 3)
    assert made.assignment == {"a": [T0], "b": [T1, T2]}


def test_partition_of_a_member_that_left_is_not_transferred() -> None:
    made = constrained({"a": [T0], "b": [T1]}, [NONE] * 4)
    assert made.assignment == {"a": [T0, T2], "b": [T1, T3]}
    assert made.transferred == {}


def test_contested_partition_counts_as_transferred() -> None:
    made = constrained({"a": [T0], "b": []}, [NONE] * 2, {T1})
    assert made.assignment == {"a": [T0], "b": [T1]}
    assert made.transferred == {T1: "b"}


def test_partition_outside_the_owners_rack_goes_to_a_member_in_it() -> None:
    made = constrained({"a": [T0], "b": [T1]}, [WEST, EAST], a="east", b="west")
    assert made.assignment == {"a": [T1], "b": [T0]}
    assert made.transferred == {T0: "b", T1: "a"}


def test_partition_without_a_member_in_its_rack_is_dealt_to_any() -> None:
    made = constrained({"a": [], "b": []}, [EAST, EAST], a="east", b="west")
    assert made.assignment == {"a": [T0], "b": [T1]}


@given(
    count=st.integers(1, 12),
    claims=st.lists(st.lists(st.integers(0, 11), unique=True), min_size=1, max_size=5),
)
def test_every_partition_has_one_owner_and_shares_stay_up_to_the_quota(
    count: int,
    claims: list[list[int]],
) -> None:
    taken: set[int] = set()
    owned: dict[str, list[TopicPartition]] = {}
    for number, claim in enumerate(claims):
        mine = [index for index in claim if index < count and index not in taken]
        taken.update(mine)
        owned[f"m{number}"] = [TopicPartition("t", index) for index in mine]
    before = {member_id: set(partitions) for member_id, partitions in owned.items()}
    made = constrained(owned, [NONE] * count)
    quota = count // len(owned)
    assert sorted(p for partitions in made.assignment.values() for p in partitions) == [("t", i) for i in range(count)]
    for member_id, partitions in made.assignment.items():
        assert len(partitions) in (quota, quota + 1)
        assert len(before[member_id].intersection(partitions)) >= min(len(before[member_id]), quota)
    for partition, member_id in made.transferred.items():
        assert partition not in before[member_id]
        assert partition in set().union(*before.values())
