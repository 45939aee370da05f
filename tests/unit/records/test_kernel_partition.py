"""The hash of keys: equal to Kafka's, in both variants."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases.golden import read_golden

ROWS = read_golden("clients/keys.jsonl.gz")


def test_hashes_and_partitions_are_those_of_apache_kafka(variant: Any) -> None:
    assert len(ROWS) >= 1_000
    for row in ROWS:
        key = bytes.fromhex(row["key"])
        assert variant.partition.murmur2(key) == row["hash"] & 0xFFFFFFFF
        for count, partition in row["partitions"]:
            assert variant.partition.partition_of_key(key, count) == partition


@given(st.binary(max_size=100), st.integers(1, 2**31 - 1))
def test_both_variants_choose_the_same_partition(variants: Any, key: bytes, count: int) -> None:
    pure, compiled = (variant.partition for variant in variants)
    assert pure.murmur2(key) == compiled.murmur2(key)
    assert 0 <= pure.partition_of_key(key, count) == compiled.partition_of_key(key, count) < count


@pytest.mark.parametrize("count", [0, -1])
def test_topic_without_partitions_is_refused(variant: Any, count: int) -> None:
    with pytest.raises(ValueError, match="has no partition for a key"):
        variant.partition.partition_of_key(b"k", count)


def test_missing_key_is_refused(variant: Any) -> None:
    with pytest.raises(TypeError):
        variant.partition.partition_of_key(None, 3)
