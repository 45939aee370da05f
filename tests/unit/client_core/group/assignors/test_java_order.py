"""Java's orders: values of String.hashCode and TopicPartition.hashCode, and how a HashMap is walked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.group.assignors.java_order import (
    PartitionSet,
    hash_order,
    partition_hash,
    partition_order,
    text_hash,
    text_order,
)
from ottla.ids import TopicPartition

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
