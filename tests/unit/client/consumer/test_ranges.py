"""Ranges of offsets and Arrow tables, in both faces, against a real broker."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.peers.ottla_clients import Blocking

from ottla import Producer
from ottla.client.consumer.ranges import Ranges
from ottla.client.consumer.sync import Consumer
from ottla.errors import OffsetOutOfRangeError, TimeoutError
from ottla.ids import TopicPartition
from ottla.records.batch import iterate_batches
from ottla.records.reader import read_records
from ottla.testing import Broker

LONG = 60.0


def chunks(consumer: Any, ranges: Any, **options: Any) -> list[Any]:
    """All chunks of the ranges, from either face."""
    if not isinstance(consumer, Blocking):
        return list(consumer.read_ranges(ranges, **options))

    async def read() -> list[Any]:
        return [each async for each in consumer._inner.read_ranges(ranges, **options)]

    return consumer._loop.run(read)


@pytest.fixture
def consumer(face: Any, broker: Broker) -> Any:
    with face(broker.bootstrap_servers, auto_offset_reset="earliest", max_partition_fetch_bytes=200) as made:
        yield made


def test_ranges_are_read_completely_as_arrow(consumer: Any, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    found = chunks(consumer, {first: (2, 7), second: (0, 10)})
    offsets: dict[TopicPartition, list[int]] = {first: [], second: []}
    for each, batch in found:
        assert set(batch.column("partition").to_pylist()) == {each.partition}
        assert batch.column("topic").to_pylist() == [topic] * batch.num_rows
        assert batch.column("value").to_pylist() == [b"%d" % offset for offset in batch.column("offset").to_pylist()]
        offsets[each] += batch.column("offset").to_pylist()
    assert offsets == {first: [2, 3, 4, 5, 6], second: list(range(10))}
    assert consumer.assignment() == set()


def test_ranges_as_columns_and_bytes_hold_the_same(consumer: Any, topic: str) -> None:
    first = TopicPartition(topic, 0)
    rows = [each.rows for _, each in chunks(consumer, {first: (3, 9)}, form="columns")]
    assert sum(rows) == 6
    views = [view for _, each in chunks(consumer, {first: (3, 9)}, form="bytes") for view in each]
    records = [record for view in views for batch in iterate_batches(bytes(view)) for record in read_records(batch)]
    assert [record.offset for record in records if 3 <= record.offset < 9] == [3, 4, 5, 6, 7, 8]


def test_an_offset_that_is_not_there_is_an_error(consumer: Any, topic: str) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="offset 50"):
        chunks(consumer, {(topic, 0): (50, 60)})


def test_a_range_beyond_the_end_ends_with_the_time(consumer: Any, topic: str) -> None:
    with pytest.raises(TimeoutError, match="not read to their ends"):
        chunks(consumer, {(topic, 0): (8, 12)}, timeout=0.3)


def test_wrong_ranges_and_forms_are_refused() -> None:
    with pytest.raises(ValueError, match="from 5 to 4"):
        Ranges({TopicPartition("t", 0): (5, 4)}, "arrow")
    with pytest.raises(ValueError, match="arrow, columns, batches, bytes, views"):
        Ranges({}, "json")
    assert Ranges({TopicPartition("t", 0): (4, 4)}, "bytes").is_done


def test_a_table_goes_on_where_a_poll_stopped(face: Any, broker: Broker, topic: str) -> None:
    with face(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign((topic, 0))
        assert len(consumer.poll(LONG, max_records=4)) == 4
        table = consumer.consume_arrow(LONG)
        assert table.column("offset").to_pylist() == [4, 5, 6, 7, 8, 9]
        assert table.column("timestamp").to_pylist()[0].timestamp() == 1.004
        assert consumer.consume_arrow(0).num_rows == 0
        consumer.seek((topic, 0), 7)
        assert [each.rows for each in consumer.consume_columns(LONG).values()] == [3]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_range_may_end_in_markers_and_aborted_records(face: Any, broker: Broker, isolation: str) -> None:
    name = f"{getattr(face, '__name__', 'aio')}-{isolation}"
    broker.create_topic(name)
    with Producer(broker.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(name, b"kept", partition=0)
        producer.begin_transaction()
        producer.send_many(name, [b"dropped"] * 2, partition=0).wait(LONG)
        producer.abort_transaction()
    with face(broker.bootstrap_servers, isolation_level=isolation) as consumer:
        for end in range(1, 6):
            found = chunks(consumer, {(name, 0): (0, end)}, timeout=LONG)
            expected = [offset for offset in ([0] if isolation == "read_committed" else [0, 2, 3]) if offset < end]
            assert [offset for _, batch in found for offset in batch.column("offset").to_pylist()] == expected


def test_no_more_than_the_range_is_fetched(face: Any, broker: Broker) -> None:
    name = f"{getattr(face, '__name__', 'aio')}-long"
    broker.create_topic(name)
    with Producer(broker.bootstrap_servers, batch_size=4000) as producer:
        producer.send_many(name, [b"x" * 500] * 4000, partition=0).wait(LONG)
    with face(broker.bootstrap_servers, max_partition_fetch_bytes=8 << 20) as consumer:
        found = chunks(consumer, {(name, 0): (5, 25)}, form="views", timeout=LONG)
        assert sum(batch.size for _, views in found for batch in views.batches) < 20_000
        received = consumer.metrics()["consumer-fetch-manager-metrics"]["bytes-consumed-total"]
        assert received < 200_000


def test_a_range_that_was_left_early_does_not_limit_what_is_read_later(broker: Broker, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Consumer[bytes, bytes](broker.bootstrap_servers, max_partition_fetch_bytes=200) as consumer:
        for _ in consumer.read_ranges({first: (0, 1), second: (0, 10)}):
            if consumer.paused():
                break
        assert consumer.assignment() == {first, second}
        consumer.assign(first, second)
        for each in (first, second):
            consumer.seek(each, 0)
        found: list[int] = []
        while len(found) < 20 and (records := consumer.poll(5)):
            found += [record.offset for record in records]
        assert sorted(found) == sorted([*range(10), *range(10)])
