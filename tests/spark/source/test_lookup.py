"""Offsets that options mean, asked of a broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.source.conftest import BEGAN_MS

from ottla import Consumer, TopicPartition
from ottla.spark.errors import SourceError
from ottla.spark.source.lookup import find_offsets
from ottla.spark.source.options import source_options
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
