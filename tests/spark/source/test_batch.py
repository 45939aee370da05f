"""Batch reads, planned and read in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.source.conftest import BEGAN_MS

from ottla import Admin, Producer, TopicPartition
from ottla.spark.errors import SourceError
from ottla.testing import Broker

Rows = Callable[..., list[tuple[int, int, bytes]]]


def test_everything_between_the_offsets_is_read_once(topic: str, fill: Any, batch_reader: Any, rows_of: Rows) -> None:
    fill(topic, [100, 50, 0])
    assert [row[:2] for row in rows_of(batch_reader(subscribe=topic))] == [
        *((0, number) for number in range(100)),
        *((1, number) for number in range(50)),
    ]
    bounds = {
        "startingOffsets": json.dumps({topic: {"0": 90, "1": 0, "2": -2}}),
        "endingOffsets": json.dumps({topic: {"0": 95, "1": 2, "2": -1}}),
    }
    found = rows_of(batch_reader(subscribe=topic, **bounds))
    assert found == [*((0, number, b"%d" % number) for number in range(90, 95)), (1, 0, b"0"), (1, 1, b"1")]
    split = batch_reader(subscribe=topic, minPartitions="7", **bounds)
    assert len(split.partitions()) == 7
    assert rows_of(split) == found
    by_time = batch_reader(
        assign=json.dumps({topic: [0]}), startingTimestamp=str(BEGAN_MS + 95), endingTimestamp=str(BEGAN_MS + 98)
    )
    assert rows_of(by_time) == [(0, number, b"%d" % number) for number in (95, 96, 97)]


def test_offsets_that_make_no_sense_are_refused(topic: str, fill: Any, batch_reader: Any) -> None:
    fill(topic, [10, 0, 0])
    one = json.dumps({topic: [0]})

    def at(offset: int) -> str:
        return json.dumps({topic: {"0": offset}})

    with pytest.raises(SourceError, match="from offset 5 to 3: the end is before the start"):
        batch_reader(assign=one, startingOffsets=at(5), endingOffsets=at(3)).partitions()
    with pytest.raises(SourceError, match=f"endingOffsets is 11 for {topic}-0, which ends at offset 10; set failOnDataLoss"):
        batch_reader(assign=one, endingOffsets=at(11)).partitions()
    with pytest.raises(SourceError, match=f"startingOffsets is 12 for {topic}-0, which ends at offset 10"):
        batch_reader(assign=one, startingOffsets=at(12)).partitions()
    clipped = batch_reader(assign=one, startingOffsets=at(8), endingOffsets=at(99), failOnDataLoss="false").partitions()
    assert [(each.first, each.end) for each in clipped] == [(8, 10)]
    assert not batch_reader(assign=one, startingOffsets=at(12), failOnDataLoss="false").partitions()


def test_records_that_were_deleted_are_told_or_passed_over(
    shared_broker: Broker, topic: str, fill: Any, batch_reader: Any, rows_of: Rows
) -> None:
    fill(topic, [10, 0, 0])
    with Admin(shared_broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6}).raise_first()
    starts = {"startingOffsets": json.dumps({topic: {"0": 2, "1": 0, "2": 0}})}
    with pytest.raises(SourceError, match=f"the records of {topic}-0 from offset 2 to 5 are gone"):
        batch_reader(subscribe=topic, **starts).partitions()
    found = rows_of(batch_reader(subscribe=topic, failOnDataLoss="false", **starts))
    assert [row[1] for row in found] == [6, 7, 8, 9]
    assert [row[1] for row in rows_of(batch_reader(subscribe=topic))] == [6, 7, 8, 9]


def test_a_pattern_without_a_topic_is_refused(batch_reader: Any) -> None:
    with pytest.raises(SourceError, match=r"matches subscribePattern 'nowhere-\.'"):
        batch_reader(subscribePattern="nowhere-.").partitions()


def test_read_committed_ends_at_the_last_stable_offset(
    shared_broker: Broker, topic: str, batch_reader: Any, rows_of: Rows
) -> None:
    """Also where the range ends in markers and in records of aborted transactions."""
    committed = {"kafka.isolation.level": "read_committed"}
    with Producer(shared_broker.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"kept", partition=0)
        producer.begin_transaction()
        producer.send_many(topic, [b"dropped"] * 5, partition=0).wait(30)
        producer.flush()
        open_reader = batch_reader(subscribe=topic, **committed)
        assert [(each.first, each.end) for each in open_reader.partitions()] == [(0, 2)]
        assert rows_of(open_reader) == [(0, 0, b"kept")]
        producer.abort_transaction()
    reader = batch_reader(subscribe=topic, **committed)
    assert [(each.first, each.end) for each in reader.partitions()] == [(0, 8)]
    assert rows_of(reader) == [(0, 0, b"kept")]
    every = rows_of(batch_reader(subscribe=topic))
    assert [row[1] for row in every] == [0, 2, 3, 4, 5, 6]
