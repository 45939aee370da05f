"""Spark's own Kafka connector reads and writes topics of Ottla, in batches and as a stream."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.spark.connector.conftest import Ask

from ottla import Producer
from ottla.testing import Broker

pytestmark = [pytest.mark.slow, pytest.mark.kafka]
BEGIN_MS = int(time.time() * 1000) - 3_600_000
"""Recent: the broker deletes records whose retention is over."""
HEADERS = [["trace", "1"], ["trace", None], ["empty", ""]]


@pytest.fixture
def where(shared_broker: Broker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}


def send(broker: Broker, topic: str, count: int, *, first: int = 0) -> None:
    """Records 0, 1, 2 … in partitions 0, 1, 2, 0 …, each a second after the one before."""
    for number in range(first, first + count):
        headers = [(name, None if value is None else value.encode()) for name, value in HEADERS]
        broker.produce(
            topic, f"v{number}", key=f"k{number}", partition=number % 3, headers=headers, timestamp=BEGIN_MS + 1000 * number
        )


def values(rows: list[Any]) -> list[str]:
    return sorted((row[4] for row in rows), key=lambda value: int(value[1:]))


def names(count: int) -> list[str]:
    return [f"v{number}" for number in range(count)]


def test_batch_read_has_every_column(connector: Ask, shared_broker: Broker, topic: str, where: dict[str, str]) -> None:
    send(shared_broker, topic, 7)
    rows = connector("read", options={**where, "subscribe": topic})
    expected = [
        [topic, number % 3, number // 3, f"k{number}", f"v{number}", BEGIN_MS + 1000 * number, HEADERS] for number in range(7)
    ]
    assert rows == sorted(expected)


def test_batch_read_keeps_to_its_offsets(connector: Ask, shared_broker: Broker, topic: str, where: dict[str, str]) -> None:
    send(shared_broker, topic, 12)
    begin = json.dumps({topic: {"0": 1, "1": -2, "2": 3}})
    end = json.dumps({topic: {"0": 3, "1": 2, "2": -1}})
    rows = connector("read", options={**where, "subscribe": topic, "startingOffsets": begin, "endingOffsets": end})
    assert [(row[1], row[2]) for row in rows] == [(0, 1), (0, 2), (1, 0), (1, 1), (2, 3)]
    times = {"startingTimestamp": str(BEGIN_MS + 6000), "endingTimestamp": str(BEGIN_MS + 9000)}
    assert values(connector("read", options={**where, "subscribe": topic, **times})) == ["v6", "v7", "v8"]
    assigned = {"assign": json.dumps({topic: [2]})}
    assert values(connector("read", options={**where, **assigned})) == ["v2", "v5", "v8", "v11"]


def test_pattern_finds_its_topics(connector: Ask, shared_broker: Broker, where: dict[str, str]) -> None:
    for name in ("connector-eu", "connector-us", "unrelated"):
        shared_broker.create_topic(name)
        shared_broker.produce(name, name)
    rows = connector("read", options={**where, "subscribePattern": "connector-.*"})
    assert [row[4] for row in rows] == ["connector-eu", "connector-us"]


def test_batch_write_keeps_keys_and_headers(connector: Ask, shared_broker: Broker, topic: str, where: dict[str, str]) -> None:
    rows = [[None if number == 3 else f"k{number}", f"v{number}", HEADERS] for number in range(20)]
    connector("write", options={**where, "topic": topic, "kafka.compression.type": "zstd"}, rows=rows)
    found = shared_broker.records(topic)
    assert sorted((each.value or b"").decode() for each in found) == sorted(names(20))
    assert {(each.key, each.value) for each in found} == {
        (None if number == 3 else b"k%d" % number, b"v%d" % number) for number in range(20)
    }
    assert all([*each.headers] == [("trace", b"1"), ("trace", None), ("empty", b"")] for each in found)


def test_stream_copies_every_row_once_over_restarts(
    connector: Ask, shared_broker: Broker, topic: str, where: dict[str, str], tmp_path: Path
) -> None:
    copies = f"{topic}-copies"
    shared_broker.create_topic(copies, partitions=2)
    source = {**where, "subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "9"}
    target = {**where, "topic": copies}
    send(shared_broker, topic, 30)
    batches = connector("stream", source=source, target=target, checkpoint=str(tmp_path))
    assert sum(batches) == 30
    assert len(batches) >= 4
    assert max(batches) <= 9
    send(shared_broker, topic, 5, first=30)
    assert connector("stream", source=source, target=target, checkpoint=str(tmp_path)) == [5]
    assert connector("stream", source=source, target=target, checkpoint=str(tmp_path)) == []
    rows = connector("read", options={**where, "subscribe": copies})
    assert values(rows) == names(35)
    assert all(row[6] == HEADERS for row in rows)


def test_committed_rows_of_our_sink_are_read_once(
    connector: Ask, shared_broker: Broker, topic: str, where: dict[str, str], tmp_path: Path
) -> None:
    exact = f"{topic}-exact"
    shared_broker.create_topic(exact, partitions=2)
    committed = {**where, "subscribe": exact, "kafka.isolation.level": "read_committed"}
    target = {**where, "topic": exact, "exactlyOnce": "true"}
    send(shared_broker, topic, 20)
    source = {**where, "subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "10"}
    batches = connector("stream", source=source, target=target, checkpoint=str(tmp_path), sink="ottla")
    assert sum(batches) == 20
    connector("write", options=target, rows=[["k20", "v20", HEADERS]], sink="ottla")
    with Producer(shared_broker.bootstrap_servers, transactional_id=f"{topic}-aborted") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(exact, b"v999")
        producer.flush()
        producer.abort_transaction()
    rows = connector("read", options=committed)
    assert values(rows) == names(21)
    assert all(row[6] == HEADERS for row in rows)
    everything = connector("read", options={**where, "subscribe": exact})
    assert "v999" in values(everything)
    assert (
        sum(
            connector(
                "stream",
                source={**committed, "startingOffsets": "earliest"},
                target={**where, "topic": topic},
                checkpoint=str(tmp_path / "second"),
            )
        )
        == 21
    )
