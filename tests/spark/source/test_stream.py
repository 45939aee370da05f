"""The offsets of a stream, batch after batch, as Spark asks for them. A new reader stands for a restarted driver."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from ottla import Admin, TopicPartition
from ottla.client.admin.topics import NewPartitions
from ottla.ids import ZERO_UUID
from ottla.spark.errors import SourceError
from ottla.spark.source import lookup, stream
from ottla.spark.source.offsets import to_json
from ottla.spark.source.topics import Found
from ottla.testing import Broker

ALL = ReadAllAvailable()
Rows = Callable[..., list[tuple[int, int, bytes]]]


def offsets(topic: str, *numbers: int) -> dict[str, dict[str, int]]:
    return {topic: {str(partition): number for partition, number in enumerate(numbers)}}


def test_batches_follow_each_other(topic: str, fill: Any, stream_reader: Any, rows_of: Rows) -> None:
    fill(topic, [3, 2, 0])
    reader = stream_reader(subscribe=topic, startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert (start, end) == (offsets(topic, 0, 0, 0), offsets(topic, 3, 2, 0))
    assert [row[:2] for row in rows_of(reader, start, end)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert reader.latestOffset(end, ALL) == end
    fill(topic, [0, 0, 1])
    assert reader.reportLatestOffset() == end
    assert rows_of(reader, end, reader.latestOffset(end, ALL)) == [(2, 0, b"0")]
    assert reader.reportLatestOffset() == offsets(topic, 3, 2, 1)


@pytest.mark.parametrize("start_at", ["latest", "group:nobody"])
def test_nothing_is_skipped_where_the_start_would_move(
    topic: str, fill: Any, stream_reader: Any, rows_of: Rows, start_at: str
) -> None:
    """Spark asks for the first offset again when it plans the first batch, maybe in another process after a restart."""
    fill(topic, [5, 0, 0])
    first = stream_reader(subscribe=topic, startingOffsets=start_at)
    start = first.initialOffset()
    fill(topic, [2, 0, 0], first=5)
    assert first.initialOffset() == start
    end = first.latestOffset(start, ALL)
    assert end == start
    assert not first.partitions(start, end)

    restarted = stream_reader(subscribe=topic, startingOffsets=start_at)
    assert not restarted.partitions(restarted.initialOffset(), end)
    found = rows_of(restarted, end, restarted.latestOffset(end, ALL))
    assert [row[1] for row in found] == list(range(start[topic]["0"], 7))
    also_found = rows_of(first, end, first.latestOffset(end, ALL))
    assert also_found == found


def test_limits_share_out_a_trigger(topic: str, fill: Any, stream_reader: Any) -> None:
    fill(topic, [90, 10, 0])
    reader = stream_reader(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    assert reader.getDefaultReadLimit() == ReadMaxRows(10)
    assert reader.latestOffset(offsets(topic, 0, 0, 0), ReadMaxRows(10)) == offsets(topic, 9, 1, 0)
    assert reader.latestOffset(offsets(topic, 0, 0, 0), ALL) == offsets(topic, 90, 10, 0)


def test_too_few_records_wait_for_more(topic: str, fill: Any, stream_reader: Any) -> None:
    fill(topic, [4, 0, 0])
    given = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": "5"}
    reader = stream_reader(**given)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    at = reader.latestOffset(reader.initialOffset(), limit)
    assert at == offsets(topic, 4, 0, 0)  # the first batch of a run does not wait
    fill(topic, [4, 0, 0], first=4)
    assert reader.latestOffset(at, limit) == at
    fill(topic, [0, 1, 0])
    assert reader.latestOffset(at, limit) == offsets(topic, 8, 1, 0)
    hasty = stream_reader(**given, maxTriggerDelay="0s")
    assert hasty.latestOffset(at, limit) == hasty.latestOffset(at, limit) == offsets(topic, 8, 1, 0)


def test_available_now_ends_where_the_topic_ended_at_first(topic: str, fill: Any, stream_reader: Any) -> None:
    fill(topic, [6, 0, 0])
    reader = stream_reader(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3")
    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    one = reader.latestOffset(reader.initialOffset(), limit)
    fill(topic, [9, 9, 0], first=6)
    two = reader.latestOffset(one, limit)
    assert (one, two) == (offsets(topic, 4, 0, 0), offsets(topic, 6, 0, 0))
    assert reader.latestOffset(two, limit) == two


def test_new_partitions_and_topics_are_read_from_their_start(
    shared_broker: Broker, topic: str, fill: Any, stream_reader: Any, rows_of: Rows
) -> None:
    fill(topic, [1, 0, 0])
    reader = stream_reader(subscribePattern=f"^{topic}")
    at = reader.latestOffset(reader.initialOffset(), ALL)
    with Admin(shared_broker.bootstrap_servers) as admin:
        admin.create_partitions({topic: NewPartitions(5)}).raise_first()
    shared_broker.create_topic(f"{topic}-more")
    fill(topic, [0, 0, 0, 0, 2])
    fill(f"{topic}-more", [3])
    end = reader.latestOffset(at, ReadMaxRows(100))
    assert end == {topic: {"0": 1, "1": 0, "2": 0, "3": 0, "4": 2}, f"{topic}-more": {"0": 3}}
    assert rows_of(reader, at, end) == [(0, 0, b"0"), (0, 1, b"1"), (0, 2, b"2"), (4, 0, b"0"), (4, 1, b"1")]


def recreate(broker: Broker, topic: str) -> None:
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions=3)


def test_a_topic_that_was_made_again_is_told(shared_broker: Broker, topic: str, fill: Any, stream_reader: Any) -> None:
    fill(topic, [9, 0, 0])
    reader = stream_reader(subscribe=topic, startingOffsets="earliest")
    at = reader.latestOffset(reader.initialOffset(), ALL)
    recreate(shared_broker, topic)
    fill(topic, [20, 0, 0])
    with pytest.raises(SourceError, match=f"{topic}-0 was read up to offset 9 and now ends at 20: the topic was deleted and"):
        reader.latestOffset(at, ALL)  # by the topic's id
    recreate(shared_broker, topic)
    fill(topic, [4, 0, 0])
    with pytest.raises(SourceError, match=f"{topic}-0 was read up to offset 9 and now ends at 4"):
        stream_reader(subscribe=topic).latestOffset(at, ALL)  # by its end


@pytest.mark.parametrize("count", [4, 20])
def test_a_topic_that_was_made_again_is_read_from_its_start(
    shared_broker: Broker, topic: str, fill: Any, stream_reader: Any, rows_of: Rows, count: int
) -> None:
    fill(topic, [9, 0, 0])
    reader = stream_reader(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    at = reader.latestOffset(reader.initialOffset(), ALL)
    recreate(shared_broker, topic)
    fill(topic, [count, 0, 0])
    end = reader.latestOffset(at, ALL)
    assert [row[1] for row in rows_of(reader, at, end)] == list(range(count))
    fill(topic, [1, 0, 0], first=count)
    assert rows_of(reader, end, reader.latestOffset(end, ALL)) == [(0, count, b"%d" % count)]


@pytest.mark.parametrize(("old", "new", "limit"), [(6, 20, 3), (3, 20, 3), (1, 3, 1), (6, 6, None), (6, 20, None)])
def test_a_topic_that_was_made_again_is_read_once(
    shared_broker: Broker, topic: str, fill: Any, stream_reader: Any, rows_of: Rows, old: int, new: int, limit: int | None
) -> None:
    """Also if a batch of the new topic ends where the query was in the old one."""
    fill(topic, [old, 0, 0])
    given = {} if limit is None else {"maxOffsetsPerTrigger": str(limit)}
    reader = stream_reader(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false", **given)
    at = reader.latestOffset(reader.initialOffset(), ALL)
    recreate(shared_broker, topic)
    fill(topic, [new, 0, 0])
    found: list[int] = []
    for _ in range(new + 1):
        end = reader.latestOffset(at, reader.getDefaultReadLimit())
        if end == at:
            break
        found += [row[1] for row in rows_of(reader, at, end)]
        at = end
    assert found == list(range(new))


def test_a_topic_that_is_gone_is_told_or_left_out(shared_broker: Broker, topic: str, fill: Any, stream_reader: Any) -> None:
    fill(topic, [2, 0, 0])
    shared_broker.create_topic(f"{topic}-stays")
    both = f"{topic},{topic}-stays"
    strict = stream_reader(subscribe=both, startingOffsets="earliest")
    lenient = stream_reader(subscribe=both, startingOffsets="earliest", failOnDataLoss="false")
    at = strict.latestOffset(strict.initialOffset(), ALL)
    assert lenient.latestOffset(lenient.initialOffset(), ALL) == at
    shared_broker.delete_topic(topic)
    with pytest.raises(SourceError, match=f"{topic}-0, {topic}-1, {topic}-2 was read before and is gone"):
        strict.latestOffset(at, ALL)
    left = lenient.latestOffset(at, ALL)
    assert left == {f"{topic}-stays": {"0": 0}}
    restarted = stream_reader(subscribe=both, failOnDataLoss="false")
    assert not restarted.partitions(offsets(topic, 0, 0, 0), at)  # a batch of the checkpoint whose topic is gone


def test_records_that_aged_out_are_told_or_passed_over(
    shared_broker: Broker, topic: str, fill: Any, stream_reader: Any, rows_of: Rows
) -> None:
    fill(topic, [9, 0, 0])
    with Admin(shared_broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 5}).raise_first()
    start, end = offsets(topic, 2, 0, 0), offsets(topic, 8, 0, 0)
    with pytest.raises(SourceError, match=f"the records of {topic}-0 from offset 2 to 4 are gone"):
        stream_reader(subscribe=topic).partitions(start, end)
    lenient = stream_reader(subscribe=topic, failOnDataLoss="false")
    assert [row[1] for row in rows_of(lenient, start, end)] == [5, 6, 7]
    given = json.dumps(start)
    with pytest.raises(SourceError, match=f"the records of {topic}-0 from offset 2 to 4 are gone"):
        stream_reader(subscribe=topic, startingOffsets=given).initialOffset()
    beyond = json.dumps(offsets(topic, 50, 0, 0))
    with pytest.raises(SourceError, match=f"startingOffsets is 50 for {topic}-0, which ends at offset 9"):
        stream_reader(subscribe=topic, startingOffsets=beyond).initialOffset()


def test_many_partitions_take_time_in_proportion(stream_reader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trigger of 20,000 partitions took 40 s when a set of them was made for each."""
    partitions = [TopicPartition("orders", number) for number in range(20_000)]
    monkeypatch.setattr(stream, "find_partitions", lambda *given, **named: Found(partitions, {"orders": ZERO_UUID}))
    monkeypatch.setattr(lookup, "end_offsets", lambda options, wanted: dict.fromkeys(wanted, 10))
    monkeypatch.setattr(lookup, "first_offsets", lambda options, wanted: dict.fromkeys(wanted, 0))
    start = to_json(dict.fromkeys(partitions, 5))
    began_s = time.monotonic()
    end = stream_reader(subscribe="orders").latestOffset(start, ALL)
    assert len(stream_reader(subscribe="orders").partitions(start, end)) == len(partitions)
    assert time.monotonic() - began_s < 10
