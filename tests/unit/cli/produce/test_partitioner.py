"""Partitions of keys, as in Kafka's Java client."""

import pytest

from ottla.cli.produce.partitioner import StickyPartition, murmur2, partition_of_key


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # Values from the tests of Kafka's own client.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_equal_those_of_kafkas_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_partition_of_a_key_is_that_of_kafkas_client() -> None:
    assert {partition_of_key(str(number).encode(), 5) for number in range(100)} == set(range(5))
    assert partition_of_key(b"", 1) == 0


def test_sticky_partition_stays_until_moved_on() -> None:
    sticky = StickyPartition([2, 4])
    seen = set()
    for _ in range(100):
        assert sticky.current in (2, 4)
        seen.add(sticky.current)
        sticky.move_on()
    assert seen == {2, 4}
