"""Offsets that options mean, asked of a broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.source.conftest import BEGAN_MS

from ottla import Consumer, TopicPartition
from ottla.errors import TimeoutError
from ottla.spark.errors import SourceError
from ottla.spark.source.lookup import ask, find_offsets, find_partitions, listed
from ottla.spark.source.options import SourceOptions, source_options
from ottla.testing import Broker


@pytest.fixture
def starts(shared_broker: Broker, topic: str, fill: Callable[..., None]) -> Callable[..., list[int]]:
    """The starting offsets of three partitions with 10, 5 and no records, whose times are 1 ms apart."""
    fill(topic, [10, 5, 0])
    partitions = [TopicPartition(topic, number) for number in range(3)]

    def look(**options: str) -> list[int]:
        given = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "subscribe": topic, **options}
        made = source_options(given, is_streaming=True)
        return [find_offsets(made, made.starting, partitions)[each] for each in partitions]

    return look


def test_earliest_and_latest(starts: Callable[..., list[int]], topic: str) -> None:
    assert starts(startingOffsets="earliest") == [0, 0, 0]
    assert starts() == [10, 5, 0]
    assert starts(startingOffsets=f'{{"{topic}": {{"0": 3, "1": -1, "2": -2}}}}') == [3, 5, 0]


def test_times(starts: Callable[..., list[int]], topic: str) -> None:
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert starts(startingTimestamp=str(BEGAN_MS + 3), **latest) == [3, 3, 0]
    assert starts(startingTimestamp=str(BEGAN_MS + 7), **latest) == [7, 5, 0]
    by_partition = json.dumps({topic: {"0": BEGAN_MS + 9, "1": BEGAN_MS + 1, "2": 0}})
    assert starts(startingOffsetsByTimestamp=by_partition, **latest) == [9, 1, 0]
    with pytest.raises(SourceError, match=r"startingTimestamp: .*-2 has no record at or after \d+ ms; give an earlier time"):
        starts(startingTimestamp=str(BEGAN_MS + 3))


def test_the_offsets_of_a_group_else_the_earliest(shared_broker: Broker, starts: Any, topic: str) -> None:
    with Consumer(shared_broker.bootstrap_servers, group_id=f"{topic}-group", enable_auto_commit=False) as consumer:
        consumer.assign((topic, 0), (topic, 1))
        consumer.commit({TopicPartition(topic, 0): 4})
    assert starts(startingOffsets=f"group:{topic}-group") == [4, 0, 0]
    assert starts(startingOffsets="group:nobody") == [0, 0, 0]


def test_offsets_must_name_what_is_read_and_nothing_else(starts: Any, topic: str) -> None:
    with pytest.raises(SourceError, match=f"startingOffsets must name every partition that is read: it lacks {topic}-2"):
        starts(startingOffsets=f'{{"{topic}": {{"0": 3, "1": 1}}}}')
    with pytest.raises(SourceError, match=f"startingOffsets names {topic}-3, which is not there"):
        starts(startingOffsets=f'{{"{topic}": {{"0": 3, "1": 1, "2": 0, "3": 0}}}}')


GIVEN = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "fetchOffset.retryIntervalMs": "1"}


def test_a_call_is_tried_until_it_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    limits_s: list[float] = []

    def call(limit_s: float) -> str:
        limits_s.append(limit_s)
        if len(limits_s) < 3:
            raise TimeoutError("nobody answers")
        return "found"

    assert ask(source_options(GIVEN, is_streaming=False), "its topics", call) == "found"
    assert limits_s[0] == 5.0 < limits_s[1] < limits_s[2]
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert texts[0] == "waiting for a broker at 127.0.0.1:1 to tell its topics, for 0 s already: nobody answers"


def test_a_broker_that_is_not_there_is_an_error_in_the_end() -> None:
    given = {**GIVEN, "kafka.default.api.timeout.ms": "150", "kafka.request.timeout.ms": "100", "fetchOffset.numRetries": "2"}
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1 did not tell the partitions of t within 0\.3 s.*start the broker"):
        find_partitions(source_options(given, is_streaming=False))


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
