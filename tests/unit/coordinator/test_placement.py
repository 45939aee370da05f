"""Placement of keys on partitions, with values of Java's String.hashCode."""

import pytest

from ottla.coordinator.placement import REMEMBERED_SIZE_MAX, _remembered, java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1906497762),
        ("console-consumer-12345", 158455506),
        ("grüße", 98768023),
        ("\U0001f600", 1772899),
        ("polygenelubricants", -(1 << 31)),
    ],
)
def test_hashes_are_those_of_java(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_hash_counts_as_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("a", 50) == 47


def test_long_keys_are_placed_but_not_cached() -> None:
    remembered = _remembered.cache_info().currsize
    long = "g" * (REMEMBERED_SIZE_MAX + 1)
    assert partition_for(long, 50) == abs(java_hash(long)) % 50
    assert _remembered.cache_info().currsize == remembered
