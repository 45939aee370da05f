"""Tests of `ottla.coordinator.groups.consumer.metadata_hash`. tests/compat compares the hash with Apache Kafka's."""

from tests.support.shards.consumer_harness import BenchTopics, topic_id

from ottla.coordinator.groups.consumer.metadata_hash import TopicHashes, topic_hash


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
