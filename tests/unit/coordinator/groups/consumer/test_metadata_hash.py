"""Tests of `ottla.coordinator.groups.consumer.metadata_hash`. tests/compat compares the hash with Apache Kafka's."""

import pytest
from tests.support.shards.consumer_harness import BenchTopics, topic_id

from ottla.coordinator.groups.consumer.metadata_hash import TopicHashes, topic_hash, xxh3_64


def _topics(count: int = 3, racks: tuple[str, ...] = (), number: int = 1) -> BenchTopics:
    return BenchTopics(1, {"t": (topic_id(number), count), "u": (topic_id(7), 1)}, racks)


def test_a_change_of_id_partitions_or_racks_changes_the_hash() -> None:
    hashes = [
        topic_hash(topics, "t")
        for topics in (_topics(), _topics(4), _topics(racks=("a",)), _topics(racks=("a", "a")), _topics(number=2))
    ]
    assert len(set(hashes)) == len(hashes)


def test_racks_with_the_same_concatenation_have_different_hashes() -> None:
    assert topic_hash(_topics(racks=("a", "bc")), "t") != topic_hash(_topics(racks=("ab", "c")), "t")


def test_the_hash_of_a_group_has_only_topics_that_exist() -> None:
    hashes = TopicHashes()
    assert hashes.of_group([], _topics()) == 0
    assert hashes.of_group(["nowhere"], _topics()) == 0
    assert hashes.of_group(["u", "t"], _topics()) == hashes.of_group(["t", "nowhere", "u"], _topics())
    assert hashes.of_group(["t"], _topics()) != hashes.of_group(["u"], _topics())
    assert -(2**63) <= hashes.of_group(["t"], _topics()) < 2**63


def test_a_hash_is_cached_until_its_topic_changes() -> None:
    hashes = TopicHashes()
    before = hashes.of_group(["t"], _topics(3))
    assert hashes.of_group(["t"], _topics(4)) == before
    hashes.forget(["u"])
    assert hashes.of_group(["t"], _topics(4)) == before
    hashes.forget(["t"])
    assert hashes.of_group(["t"], _topics(4)) != before
    hashes.forget(None)
    assert hashes.of_group(["t"], _topics(3)) == before


# Tests of `ottla.coordinator.groups.consumer.metadata_hash`, against values of the reference implementation.


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0xE12EF9D2EB86CEEB),
        (3, 0xA9088DDA485B481C),
        (4, 0x57648C318A7A307E),
        (8, 0xB0FB3E3C3F94990A),
        (9, 0x8ACA5CB309437C2E),
        (16, 0x2BD926D88792965A),
        (17, 0x621F018AAD19B14A),
        (128, 0xE9549AF9A74093E6),
        (129, 0xB54AD1CD8A4C84B9),
        (240, 0x3E136902EC966624),
        (241, 0xBD7D29B6BA966D6A),
        (1024, 0xDC5ACF0B043C445B),
        (1025, 0xC856C953BBDBC807),
        (5000, 0x308F149A673A1625),
    ],
)
def test_hashes_equal_those_of_the_reference(size: int, expected: int) -> None:
    assert xxh3_64(bytes((index * 7 + size) % 256 for index in range(size))) == expected
