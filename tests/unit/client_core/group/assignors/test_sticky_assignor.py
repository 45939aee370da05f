"""The sticky assignors: what they remember between rebalances, and what cooperative-sticky withholds."""

from __future__ import annotations

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group.assignors import Assignor, MemberSubscription, RebalanceProtocol
from ottla.client_core.group.sticky import (
    CooperativeStickyAssignor,
    StickyAssignor,
    read_sticky_user_data,
    write_sticky_user_data,
)
from ottla.ids import TopicPartition

NONE = frozenset[str]()
T0, T1, T2, T3 = (TopicPartition("t", index) for index in range(4))
TOPICS = {"t": [NONE] * 4}
SUBSCRIBED = frozenset({"t"})


def test_sticky_member_sends_its_last_assignment() -> None:
    assignor = StickyAssignor()
    assert assignor.subscription_user_data(SUBSCRIBED) is None
    assignor.on_assignment([T1, T3], 5)
    assert read_sticky_user_data(assignor.subscription_user_data(SUBSCRIBED)) == ((T1, T3), 5)


def test_sticky_gives_back_what_user_data_says_and_not_owned_partitions() -> None:
    members = [
        MemberSubscription("a", ("t",), owned=(T0, T1), user_data=write_sticky_user_data([T2, T3], 1)),
        MemberSubscription("b", ("t",)),
    ]
    assert StickyAssignor().assign(members, TOPICS) == {"a": [T2, T3], "b": [T0, T1]}


def test_cooperative_member_sends_the_generation_of_its_last_assignment() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.subscription_user_data(SUBSCRIBED) == pack(">i", -1)
    assignor.on_assignment([T0], 9)
    assert assignor.subscription_user_data(SUBSCRIBED) == pack(">i", 9)


def test_only_cooperative_sticky_supports_the_cooperative_protocol() -> None:
    assert RebalanceProtocol.COOPERATIVE in CooperativeStickyAssignor.protocols
    assert RebalanceProtocol.EAGER in CooperativeStickyAssignor.protocols
    assert StickyAssignor.protocols == (RebalanceProtocol.EAGER,)


def test_cooperative_withholds_what_another_member_still_has() -> None:
    members = [MemberSubscription("a", ("t",), (T0, T1, T2, T3), 1), MemberSubscription("b", ("t",))]
    assert CooperativeStickyAssignor().assign(members, TOPICS) == {"a": [T0, T1], "b": []}
    given_up = [MemberSubscription("a", ("t",), (T0, T1), 2), MemberSubscription("b", ("t",), (), 2)]
    assert CooperativeStickyAssignor().assign(given_up, TOPICS) == {"a": [T0, T1], "b": [T2, T3]}


def test_cooperative_withholds_with_different_subscriptions_too() -> None:
    members = [MemberSubscription("a", ("t", "u"), (T0, T1, T2, T3), 1), MemberSubscription("b", ("t",))]
    assigned = CooperativeStickyAssignor().assign(members, {**TOPICS, "u": [NONE]})
    assert assigned["b"] == []
    assert len(assigned["a"]) == 3


def test_generation_of_an_old_client_is_read_from_its_user_data() -> None:
    """Of two claims the newer one wins, though neither subscription says its generation."""
    members = [
        MemberSubscription("a", ("t",), (T0, T1), user_data=pack(">i", 4)),
        MemberSubscription("b", ("t",), (T2, T3), user_data=b"\x00"),
    ]
    assert CooperativeStickyAssignor().assign(members, TOPICS) == {"a": [T0, T1], "b": [T2, T3]}


def assignments_in_turn(assignor: Assignor, sizes: list[int]) -> None:
    """Let a group grow and shrink to these sizes, each until it is settled; check balance, and that shares stay."""
    owned: dict[str, tuple[TopicPartition, ...]] = {}
    generation = 0
    for size in sizes:
        owned = {f"m{number}": owned.get(f"m{number}", ()) for number in range(size)}
        before = owned
        for _ in range(2):
            generation += 1
            members = [
                MemberSubscription(m, ("t",), has, generation, user_data=write_sticky_user_data(has, generation))
                for m, has in owned.items()
            ]
            assigned = assignor.assign(members, {"t": [NONE] * 12})
            owned = {member_id: tuple(given) for member_id, given in assigned.items()}
        assert sorted(p for has in owned.values() for p in has) == [("t", index) for index in range(12)]
        for member_id, has in owned.items():
            assert len(has) in (12 // size, -(-12 // size))
            assert len(set(has).intersection(before[member_id])) >= min(len(before[member_id]), 12 // size)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_sticky_groups_that_grow_and_shrink_keep_their_shares(sizes: list[int]) -> None:
    assignments_in_turn(StickyAssignor(), sizes)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_cooperative_groups_settle_in_two_rebalances(sizes: list[int]) -> None:
    assignments_in_turn(CooperativeStickyAssignor(), sizes)
