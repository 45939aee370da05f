"""Which partitions are read."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import TopicPartition
from ottla.spark.errors import SourceError
from ottla.spark.source.lookup import find_partitions, listed
from ottla.spark.source.options import SourceOptions, source_options
from ottla.testing import Broker


def options(broker: Broker, **given: Any) -> SourceOptions:
    return source_options({"kafka.bootstrap.servers": broker.bootstrap_servers, **given}, is_streaming=False)


def test_a_pattern_matches_anywhere_in_a_name_but_no_internal_topic(shared_broker: Broker) -> None:
    for name in ("pattern-eu", "old-pattern-us", "other-eu"):
        shared_broker.create_topic(name)
    found = find_partitions(options(shared_broker, subscribePattern="pattern"))
    assert found.partitions == [TopicPartition("old-pattern-us", 0), TopicPartition("pattern-eu", 0)]
    assert set(found.topic_ids) == {"pattern-eu", "old-pattern-us"}
    assert find_partitions(options(shared_broker, subscribePattern="^pattern")).partitions == [TopicPartition("pattern-eu", 0)]
    everything = find_partitions(options(shared_broker, subscribePattern=".*")).partitions
    assert {each.topic for each in everything}.isdisjoint({"__consumer_offsets", "__transaction_state"})


def test_topics_and_partitions_are_found(shared_broker: Broker, topic: str) -> None:
    found = find_partitions(options(shared_broker, subscribe=topic))
    assert found.partitions == [TopicPartition(topic, number) for number in range(3)]
    chosen = find_partitions(options(shared_broker, assign=f'{{"{topic}": [2, 0]}}')).partitions
    assert chosen == [TopicPartition(topic, 0), TopicPartition(topic, 2)]


def test_a_missing_topic_says_what_is_there(shared_broker: Broker, topic: str) -> None:
    wanted = options(shared_broker, subscribe=f"{topic},not-there")
    with pytest.raises(SourceError, match=f"there is no topic not-there at {shared_broker.bootstrap_servers}; it has .*"):
        find_partitions(wanted)
    misspelt = topic.replace("missing", "mising")
    with pytest.raises(SourceError, match=rf"; did you mean {topic}\? It has .*"):
        find_partitions(options(shared_broker, subscribe=misspelt))
    assert find_partitions(wanted, must_exist=False).partitions == [TopicPartition(topic, number) for number in range(3)]
    with pytest.raises(SourceError, match=f"assign names partition 3 of {topic}, which has 3"):
        find_partitions(options(shared_broker, assign=f'{{"{topic}": [0, 3]}}'))


def test_the_list_of_topics_is_short() -> None:
    assert listed(["__consumer_offsets"]) == "it has no topic yet"
    assert listed(["orders", "__x"]) == "it has only orders"
    assert listed(f"t{number}" for number in range(10)) == "it has t0, t1, t2, t3, t4, t5, t6, t7 and 2 more"
