"""The offsets of a stream, batch after batch, as Spark asks for them. A new reader stands for a restarted driver."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from ottla import Admin, TopicPartition
from ottla.client.admin.topics import NewPartitions
from ottla.ids import Uuid, random_uuid
from ottla.spark.errors import SourceError
from ottla.spark.source import lookup
from ottla.spark.source.lookup import ReadablePartitions
from ottla.spark.source.offsets import from_json, to_json
from ottla.testing import Broker

ALL = ReadAllAvailable()
Rows = Callable[..., list[tuple[int, int, bytes]]]


def offsets(topic: str, *numbers: int) -> dict[str, dict[str, int]]:
    return {topic: {str(partition): number for partition, number in enumerate(numbers)}}


def plain(found: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The offsets without the ids of the topics."""
    return to_json(from_json(found))


def test_batches_follow_each_other(topic: str, fill: Any, stream_reader: Any, rows_of: Rows) -> None:
    fill(topic, [3, 2, 0])
    reader = stream_reader(subscribe=topic, startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert (plain(start), plain(end)) == (offsets(topic, 0, 0, 0), offsets(topic, 3, 2, 0))
    assert [row[:2] for row in rows_of(reader, start, end)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert reader.latestOffset(end, ALL) == end
    fill(topic, [0, 0, 1])
    assert reader.reportLatestOffset() == plain(end)
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
    assert plain(reader.latestOffset(offsets(topic, 0, 0, 0), ReadMaxRows(10))) == offsets(topic, 9, 1, 0)
    assert plain(reader.latestOffset(offsets(topic, 0, 0, 0), ALL)) == offsets(topic, 90, 10, 0)


def test_too_few_records_wait_for_more(topic: str, fill: Any, stream_reader: Any) -> None:
    fill(topic, [4, 0, 0])
    given = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": "5"}
    reader = stream_reader(**given)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    at = reader.latestOffset(reader.initialOffset(), limit)
    assert plain(at) == offsets(topic, 4, 0, 0)  # the first batch of a run does not wait
    fill(topic, [4, 0, 0], first=4)
    assert reader.latestOffset(at, limit) == at
    fill(topic, [0, 1, 0])
    assert plain(reader.latestOffset(at, limit)) == offsets(topic, 8, 1, 0)
    hasty = stream_reader(**given, maxTriggerDelay="0s")
    assert plain(hasty.latestOffset(at, limit)) == plain(hasty.latestOffset(at, limit)) == offsets(topic, 8, 1, 0)


def test_available_now_ends_where_the_topic_ended_at_first(topic: str, fill: Any, stream_reader: Any) -> None:
    fill(topic, [6, 0, 0])
    reader = stream_reader(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3")
    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    one = reader.latestOffset(reader.initialOffset(), limit)
    fill(topic, [9, 9, 0], first=6)
    two = reader.latestOffset(one, limit)
    assert (plain(one), plain(two)) == (offsets(topic, 4, 0, 0), offsets(topic, 6, 0, 0))
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
    assert plain(end) == {topic: {"0": 1, "1": 0, "2": 0, "3": 0, "4": 2}, f"{topic}-more": {"0": 3}}
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
    with pytest.raises(SourceError, match=f"{topic}-0 was read up to offset 9 and now ends at 4: the topic was deleted and"):
        stream_reader(subscribe=topic).latestOffset(plain(at), ALL)  # by its end


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


@pytest.mark.parametrize("count", [4, 20])
def test_topic_made_again_while_the_driver_was_down_is_read_from_its_start(
    shared_broker: Broker, topic: str, fill: Any, stream_reader: Any, rows_of: Rows, count: int
) -> None:
    """The ids are in the checkpoint: before, a new topic that was longer than the position went unnoticed."""
    fill(topic, [9, 0, 0])
    first = stream_reader(subscribe=topic, startingOffsets="earliest")
    at = first.latestOffset(first.initialOffset(), ALL)
    recreate(shared_broker, topic)
    fill(topic, [count, 0, 0])
    with pytest.raises(SourceError, match=f"{topic}-0 was read up to offset 9 and now ends at {count}: the topic was deleted"):
        stream_reader(subscribe=topic).latestOffset(at, ALL)
    second = stream_reader(subscribe=topic, failOnDataLoss="false")
    end = second.latestOffset(at, ALL)
    third = stream_reader(subscribe=topic, failOnDataLoss="false")  # the driver died after it had planned the batch
    for reader in (second, third):
        assert [row[1] for row in rows_of(reader, at, end)] == list(range(count))


def test_planned_batch_of_a_topic_made_again_since_reads_nothing_of_the_new_one(
    shared_broker: Broker, topic: str, fill: Any, stream_reader: Any, rows_of: Rows
) -> None:
    fill(topic, [9, 0, 0])
    first = stream_reader(subscribe=topic, startingOffsets="earliest")
    start = first.initialOffset()
    end = first.latestOffset(start, ALL)
    recreate(shared_broker, topic)
    fill(topic, [20, 0, 0])
    restarted = stream_reader(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    assert rows_of(restarted, restarted.initialOffset(), end) == []
    after = restarted.latestOffset(end, ALL)
    assert [row[1] for row in rows_of(restarted, end, after)] == list(range(20))


# What a cluster of several brokers may answer

A, B = (random_uuid(os.urandom) for _ in range(2))
ORDERS = [TopicPartition("orders", 0)]


class Answers:
    """A cluster that answers one by one: which topic there is, and where partition 0 of it ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topic_ids: list[Uuid | None] = []
        """The last one stays."""
        self.end = 0
        monkeypatch.setattr(lookup, "find_partitions", self.find)
        monkeypatch.setattr(lookup, "ASK_INTERVAL_S", 0.0)
        monkeypatch.setattr(lookup, "BELIEVED_AFTER_S", 0.05)
        monkeypatch.setattr(lookup, "end_offsets", lambda options, wanted: dict.fromkeys(wanted, self.end))
        monkeypatch.setattr(lookup, "first_offsets", lambda options, wanted: dict.fromkeys(wanted, 0))

    def find(self, *given: Any, **named: Any) -> ReadablePartitions:
        found = self.topic_ids.pop(0) if len(self.topic_ids) > 1 else self.topic_ids[0]
        return ReadablePartitions() if found is None else ReadablePartitions(ORDERS, {"orders": found})


def ranges(reader: Any, start: Any, end: Any) -> list[tuple[int, int]]:
    return [(each.first, each.end) for each in reader.partitions(start, end)]


@pytest.mark.parametrize("limit", [None, "100"])
def test_unclean_election_is_read_on_from_the_end(
    stream_reader: Any, monkeypatch: pytest.MonkeyPatch, limit: str | None
) -> None:
    """As in Spark's own source. Before, the partition was read again from its start: every record came twice."""
    answers = Answers(monkeypatch)
    answers.topic_ids, answers.end = [A], 6
    given = {} if limit is None else {"maxOffsetsPerTrigger": limit}
    at = to_json({ORDERS[0]: 9}, {"orders": A})
    with pytest.raises(SourceError, match="orders-0 was read up to offset 9 and now ends at 6: an unclean election"):
        stream_reader(subscribe="orders").latestOffset(at, ALL)
    reader = stream_reader(subscribe="orders", failOnDataLoss="false", **given)
    end = reader.latestOffset(at, reader.getDefaultReadLimit())
    assert plain(end) == offsets("orders", 6)
    assert ranges(reader, at, end) == ranges(stream_reader(subscribe="orders", failOnDataLoss="false"), at, end) == []
    answers.end = 8
    assert ranges(reader, end, reader.latestOffset(end, reader.getDefaultReadLimit())) == [(6, 8)]


def test_shorter_partition_without_an_id_in_the_checkpoint_is_read_from_its_start(
    stream_reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(monkeypatch)
    answers.topic_ids, answers.end = [A], 6
    reader = stream_reader(subscribe="orders", failOnDataLoss="false")
    at = to_json({ORDERS[0]: 9})
    assert ranges(reader, at, reader.latestOffset(at, ALL)) == [(0, 6)]


@pytest.mark.parametrize("wrong", [[None], [B], [B, None], [None, B, B]])
def test_brokers_that_lag_do_not_move_positions(
    stream_reader: Any, monkeypatch: pytest.MonkeyPatch, wrong: list[Uuid | None]
) -> None:
    """One answer without the topic, or with its former id, made the reader forget the position and begin at the start."""
    answers = Answers(monkeypatch)
    answers.topic_ids, answers.end = [*wrong, A], 12
    reader = stream_reader(subscribe="orders", failOnDataLoss="false")
    at = to_json({ORDERS[0]: 9}, {"orders": A})
    end = reader.latestOffset(at, ALL)
    assert end == to_json({ORDERS[0]: 12}, {"orders": A})
    assert ranges(reader, at, end) == [(9, 12)]
    restarted = stream_reader(subscribe="orders", failOnDataLoss="false")
    answers.topic_ids = [*wrong, A]
    assert ranges(restarted, at, end) == [(9, 12)]


def test_cluster_that_never_agrees_is_not_asked_for_ever(stream_reader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    answers.topic_ids, answers.end = [random_uuid(os.urandom) for _ in range(100_000)], 12
    monkeypatch.setattr(lookup, "ASKED_FOR_S_MAX", 0.2)
    reader = stream_reader(subscribe="orders", failOnDataLoss="false")
    assert plain(reader.latestOffset(to_json({ORDERS[0]: 9}, {"orders": A}), ALL)) == offsets("orders", 12)


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
    assert plain(left) == {f"{topic}-stays": {"0": 0}}
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
    monkeypatch.setattr(lookup, "find_partitions", lambda *given, **named: ReadablePartitions(partitions, {"orders": A}))
    monkeypatch.setattr(lookup, "end_offsets", lambda options, wanted: dict.fromkeys(wanted, 10))
    monkeypatch.setattr(lookup, "first_offsets", lambda options, wanted: dict.fromkeys(wanted, 0))
    start = to_json(dict.fromkeys(partitions, 5))
    began_s = time.monotonic()
    end = stream_reader(subscribe="orders").latestOffset(start, ALL)
    assert len(stream_reader(subscribe="orders").partitions(start, end)) == len(partitions)
    assert time.monotonic() - began_s < 10
