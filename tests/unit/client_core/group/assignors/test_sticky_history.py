"""What sticky members say that they owned: their bytes, and how contradictory claims are settled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group.assignors import MemberSubscription
from ottla.client_core.group.sticky import (
    History,
    Ownership,
    read_sticky_user_data,
    settle,
    write_sticky_user_data,
)
from ottla.ids import TopicPartition

NONE = frozenset[str]()
T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
PARTITIONS = st.lists(st.builds(TopicPartition, st.sampled_from(["t", "u", "übung"]), st.integers(0, 99)), unique=True)


def test_user_data_is_in_kafkas_format() -> None:
    data = write_sticky_user_data([T1, T0], 7)
    assert data.hex() == "00000001" + "0001" + "74" + "00000002" + "00000001" + "00000000" + "00000007"


@given(PARTITIONS, st.integers(-1, 2**31 - 1))
def test_user_data_is_read_as_written(partitions: list[TopicPartition], generation: int) -> None:
    history = read_sticky_user_data(write_sticky_user_data(partitions, generation))
    assert sorted(history.partitions) == sorted(partitions)
    assert history.generation == generation


def test_user_data_without_a_generation_is_of_an_old_client() -> None:
    assert read_sticky_user_data(write_sticky_user_data([T0], 7)[:-4]) == History((T0,), None)


def test_no_user_data_is_no_history() -> None:
    assert read_sticky_user_data(None) == read_sticky_user_data(b"") == History((), None)


@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    assert isinstance(read_sticky_user_data(data), History)


def test_cut_user_data_is_no_history() -> None:
    assert read_sticky_user_data(write_sticky_user_data([T0, T1], 7)[:-6]) == History((), -1)


def settled(*claims: tuple[str, list[TopicPartition], int], topics: dict[str, tuple[str, ...]] | None = None) -> Ownership:
    wanted = topics or {}
    members = [
        MemberSubscription(member_id, wanted.get(member_id, ("t",)), tuple(owned), generation)
        for member_id, owned, generation in claims
    ]
    return settle(members, {m.member_id: History(m.owned, m.generation) for m in members}, {"t": [NONE] * 3, "u": [NONE]})


def test_claims_of_partitions_that_do_not_exist_are_dropped() -> None:
    gone = [TopicPartition("t", 3), TopicPartition("deleted", 0), TopicPartition("t", -1)]
    assert settled(("a", [T0, *gone], 1)).owned == {"a": [T0]}


def test_newer_generation_wins_in_either_order() -> None:
    assert settled(("a", [T0, T1], 1), ("b", [T0], 2)).owned == {"a": [T1], "b": [T0]}
    assert settled(("a", [T0], 2), ("b", [T0, T1], 1)).owned == {"a": [T0], "b": [T1]}


def test_same_generation_leaves_a_contested_partition_to_neither() -> None:
    ownership = settled(("a", [T0, T1], 3), ("b", [T0, T2], 3))
    assert ownership.owned == {"a": [T1], "b": [T2]}
    assert ownership.contested == {T0}
    assert ownership.generation_max == 3


def test_members_with_the_same_topics_in_another_order_are_alike() -> None:
    assert settled(("a", [], 1), ("b", [], 1), topics={"a": ("t", "u"), "b": ("u", "t")}).are_alike
    assert not settled(("a", [], 1), ("b", [], 1), topics={"a": ("t", "u"), "b": ("t",)}).are_alike
    assert not settled(("a", [], 1), ("b", [], 1), topics={"a": ("t",), "b": ("u",)}).are_alike
