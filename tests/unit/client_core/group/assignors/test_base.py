"""The base class of assignors: its defaults, and the example that its docstring shows."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group import assignors as base
from ottla.client_core.group.assignors import (
    NO_GENERATION,
    Assignor,
    MemberSubscription,
    PartitionSet,
    RebalanceProtocol,
    are_racks_useful,
    hash_order,
    in_hash_order,
    in_member_order,
    partition_hash,
    partition_order,
    subscribed_topics,
    text_hash,
    text_order,
)
from ottla.ids import TopicPartition

NO_RACKS: frozenset[str] = frozenset()


def test_assignor_without_assign_cannot_be_made() -> None:
    class Unfinished(Assignor):
        name = "unfinished"

    with pytest.raises(TypeError, match="assign"):
        Unfinished()  # type: ignore[abstract]


def test_example_of_the_docstring_gives_everything_to_the_first_member() -> None:
    example = textwrap.dedent(str(base.__doc__).split("`assign`:\n")[1].split("\nAll members")[0])
    names: dict[str, type[Assignor]] = {}
    exec(example, {"Assignor": Assignor, "TopicPartition": TopicPartition}, names)
    assignor = names["EverythingToOne"]()
    members = [MemberSubscription("b", ("t",)), MemberSubscription("a", ("t",))]
    assert assignor.assign(members, {"t": [NO_RACKS] * 2}) == {"a": [("t", 0), ("t", 1)], "b": []}
    assert assignor.protocols == (RebalanceProtocol.EAGER,)
    assert assignor.subscription_user_data(frozenset({"t"})) is None


def test_cooperative_is_the_higher_protocol() -> None:
    assert max(RebalanceProtocol) is RebalanceProtocol.COOPERATIVE
    assert [protocol.value for protocol in RebalanceProtocol] == [0, 1], "the numbers are Kafka's"


def test_member_that_says_only_its_topics_owns_nothing() -> None:
    member = MemberSubscription("m", ("t",))
    assert (member.owned, member.generation, member.rack) == ((), NO_GENERATION, None)


# What several assignors ask of members and topics: their orders, and whether racks matter.

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


# Java's orders: values of String.hashCode and TopicPartition.hashCode, and how a HashMap is walked.

TEXTS = st.text(max_size=8)


def test_text_hash_is_javas() -> None:
    assert text_hash("") == 0
    assert text_hash("a") == 97
    assert text_hash("hello") == 99162322
    assert text_hash("polygenelubricants") == 0x80000000, "Integer.MIN_VALUE, without its sign"
    assert text_hash("\U0001f600") == 31 * 0xD83D + 0xDE00, "a surrogate pair is two units"


def test_partition_hash_is_kafkas() -> None:
    assert partition_hash(TopicPartition("a", 0)) == 31 * 31 + 97
    assert partition_hash(TopicPartition("a", 2)) == 31 * 33 + 97
    assert partition_hash(TopicPartition("polygenelubricants", 1)) == 31 * 32 + 0x80000000


def test_text_order_puts_surrogates_before_high_characters() -> None:
    emoji, high = "\U0001f600", "\uffee"
    assert emoji > high, "by code point"
    assert sorted([high, emoji], key=text_order) == [emoji, high], "by UTF-16 unit"


def test_partition_order_is_by_topic_then_number() -> None:
    partitions = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert sorted(partitions, key=partition_order) == [("a", 9), ("a", 10), ("b", 0)]


def test_hash_order_walks_buckets_not_insertions() -> None:
    # Hashes 97, 98 and 112: buckets 1, 2 and 0 of 16.
    assert hash_order(["b", "a", "p"]) == ["p", "a", "b"]


def test_hash_order_keeps_the_order_of_insertion_inside_a_bucket() -> None:
    assert text_hash("Aa") == text_hash("BB")
    assert hash_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert hash_order(["Aa", "BB", "Aa"]) == ["Aa", "BB"]


def test_hash_order_grows_the_table_with_the_13th_key() -> None:
    twelve = [chr(code) for code in range(97, 109)]  # buckets 1 to 12 of 16
    assert hash_order([*twelve[:11], "p"])[0] == "p", "12 keys: 16 buckets, and p is in the first"
    assert hash_order([*twelve, "p"])[-1] == "p", "13 keys: 32 buckets, and p is in number 16"


@given(st.lists(TEXTS, max_size=60))
def test_hash_order_has_every_text_once(texts: list[str]) -> None:
    assert sorted(hash_order(texts)) == sorted(set(texts))


def test_partition_set_is_walked_by_bucket() -> None:
    partitions = PartitionSet()
    for index in (3, 1, 2):
        partitions.add(TopicPartition("a", index))
    assert list(partitions) == sorted(partitions, key=lambda each: (partition_hash(each) ^ partition_hash(each) >> 16) & 15)
    assert len(partitions) == 3


def test_partition_set_that_has_shrunk_is_walked_like_a_big_table() -> None:
    every = [TopicPartition("topic", index) for index in range(40)]
    shrunk, small = PartitionSet(), PartitionSet()
    for partition in every:
        shrunk.add(partition)
    for partition in every[4:]:
        shrunk.remove(partition)
    for partition in every[:4]:
        small.add(partition)
    bucket = {p: partition_hash(p) ^ partition_hash(p) >> 16 for p in every[:4]}
    assert list(shrunk) == sorted(bucket, key=lambda p: bucket[p] & 63)
    assert list(small) == sorted(bucket, key=lambda p: bucket[p] & 15)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_partition_set_holds_what_a_set_would(changes: list[tuple[bool, int]]) -> None:
    partitions, model = PartitionSet(), set[TopicPartition]()
    for is_added, index in changes:
        partition = TopicPartition("t", index)
        if is_added:
            partitions.add(partition)
            model.add(partition)
        elif partition in model:
            partitions.remove(partition)
            model.remove(partition)
    assert set(partitions) == model
    assert len(partitions) == len(model)
