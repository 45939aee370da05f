"""Writing the rows of a task: what it holds and waits for, and the error that names a row which cannot be written."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType

from ottla import Admin, Producer
from ottla.client.admin.topics import NewPartitions
from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.schema import HEADERS
from ottla.spark.sink.rows import by_topic, check_schema, write_rows
from ottla.testing import Broker


def schema(**columns: str | DataType) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made = made.add(name, kind)
    return made


@pytest.mark.parametrize(
    "columns",
    [
        schema(value="binary"),
        schema(value="string", key="string"),
        schema(topic="string", key="binary", value="string", partition="integer", headers=HEADERS),
    ],
)
def test_columns_of_sparks_own_sink_are_accepted(columns: StructType) -> None:
    check_schema(columns, "orders")


@pytest.mark.parametrize(
    ("columns", "topic", "expected"),
    [
        (schema(key="string"), "orders", "needs a column value; there is key"),
        (schema(value="integer"), "orders", "the column value is int: it must be binary or string; cast it"),
        (schema(value="string", partition="long"), "orders", "the column partition is bigint: it must be int"),
        (schema(value="string", headers=MapType(StringType(), BinaryType())), "orders", "the column headers is map"),
        (schema(value="string", price="double"), "orders", "knows no column price"),
        (schema(value="string"), None, "give the option topic, or a column topic"),
    ],
)
def test_other_columns_are_refused_with_the_reason(columns: StructType, topic: str | None, expected: str) -> None:
    with pytest.raises(SparkOptionError, match=expected):
        check_schema(columns, topic)


def test_rows_are_cut_by_topic_and_keep_their_numbers() -> None:
    batch = pa.record_batch(
        {"topic": ["a", "b", "a"], "value": ["1", "2", "3"], "partition": pa.array([5, None, 9], pa.int32())}
    )
    first, second = by_topic(batch, None, 100)
    assert (first.topic, first.rows.column("value").to_pylist(), first.row_number(1)) == ("a", ["1", "3"], 102)
    assert (second.topic, second.rows.column("value").to_pylist(), second.row_number(0)) == ("b", ["2"], 101)
    assert (first.highest_partition(), second.highest_partition()) == (9, None)
    assert (first.first_row_outside(6), first.first_row_outside(10)) == (1, None)


def test_the_option_topic_wins_over_the_column() -> None:
    batch = pa.record_batch({"topic": ["a", None], "value": ["1", "2"]})
    (only,) = by_topic(batch, "orders", 0)
    assert (only.topic, only.rows.schema.names, only.row_number(1)) == ("orders", ["value"], 1)


LARGE = b"x" * 50_000


@pytest.fixture
def producer(shared_broker: Broker) -> Iterator[Producer[Any, Any]]:
    with Producer(shared_broker.bootstrap_servers, max_request_size=200_000, max_block_ms=10_000) as made:
        yield made


def batch(values: list[bytes | None], **columns: list[Any]) -> pa.RecordBatch:
    partitions = columns.pop("partition", None)
    made: dict[str, Any] = {"value": pa.array(values, pa.binary()), **columns}
    if partitions is not None:
        made["partition"] = pa.array(partitions, pa.int32())
    return pa.record_batch(made)


def test_every_row_is_stored_where_its_columns_say(shared_broker: Broker, out: str, producer: Producer[Any, Any]) -> None:
    headers = [[{"key": "trace", "value": b"1"}], None]
    rows = batch([b"a", None], key=["k", None], partition=[1, 0], headers=headers)
    assert write_rows(producer, out, iter([rows, batch([b"c"])]), 0) == 3
    found = sorted(
        (each.partition, each.key, each.value, each.headers) for each in shared_broker.records(out) if each.value != b"c"
    )
    assert found == [(0, None, None, ()), (1, b"k", b"a", (("trace", b"1"),))]


class Values(bytearray):
    """The memory of a column. A plain bytearray has no weak references."""


def test_rows_are_released_once_they_are_stored(out: str, producer: Producer[Any, Any]) -> None:
    held: list[weakref.ref[Values]] = []
    kept: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(6):
            producer.flush()  # what was sent before is stored now
            values = Values(b"abc")
            held.append(weakref.ref(values))
            ends = pa.array([0, 3], pa.int32()).buffers()[1]
            column = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(values)])
            del values
            yield pa.record_batch({"value": column})
            del column
            kept.append(sum(each() is not None for each in held))

    assert write_rows(producer, out, batches(), 0) == 6
    assert max(kept) <= 2  # the batch that the loop has, and the one before it


def test_a_task_of_small_batches_does_not_wait_until_they_have_lingered(shared_broker: Broker, out: str) -> None:
    linger_s = 5.0
    with Producer(shared_broker.bootstrap_servers, linger_ms=int(linger_s * 1000)) as producer:
        began_s = time.monotonic()
        assert write_rows(producer, out, iter([batch([b"a"])] * 100), 0) == 100
        assert time.monotonic() - began_s < linger_s


def test_a_row_larger_than_a_request_is_named(out: str, producer: Producer[Any, Any]) -> None:
    rows = [batch([b"a", b"b"]), batch([b"c", b"x" * 300_000, b"e"], key=[b"1", b"2", b"3"])]
    with pytest.raises(
        SinkError, match=rf"row 3 of task 7 \(key b'2'\) is too large for {out} \(key 1 bytes, value 300000 bytes\)"
    ):
        write_rows(producer, out, iter(rows), 7)


def test_a_row_larger_than_the_topic_allows_is_named(shared_broker: Broker, producer: Producer[Any, Any]) -> None:
    shared_broker.create_topic("small-records", config={"max.message.bytes": 10_000})
    rows = [batch([b"a", b"b"]), batch([b"c", LARGE, b"e"], key=[b"1", b"2", b"3"])]
    with pytest.raises(
        SinkError, match=r"row 3 of task 0 \(key b'2'\) is too large for small-records \(key 1 bytes, value 50000"
    ):
        write_rows(producer, None, (each.append_column("topic", pa.array(["small-records"] * len(each))) for each in rows), 0)


def test_a_partition_that_the_topic_lacks_is_named(out: str, producer: Producer[Any, Any]) -> None:
    for number in (2, -1):
        rows = batch([b"a", b"b", b"c"], partition=[0, None, number])
        with pytest.raises(SinkError, match=f"row 2 of task 0 has partition {number}, but {out} has 2 partitions: 0 to 1"):
            write_rows(producer, out, iter([rows]), 0)


def test_a_partition_that_was_added_since_is_written_to(
    shared_broker: Broker, out: str, producer: Producer[Any, Any], admin: Admin
) -> None:
    assert write_rows(producer, out, iter([batch([b"a"], partition=[1])]), 0) == 1
    admin.create_partitions({out: NewPartitions(4)}).raise_first()
    assert write_rows(producer, out, iter([batch([b"b"], partition=[3])]), 0) == 1
    assert [(each.partition, each.value) for each in shared_broker.records(out)] == [(1, b"a"), (3, b"b")]


def test_a_row_of_several_topics_has_its_number_in_the_task(
    shared_broker: Broker, out: str, producer: Producer[Any, Any]
) -> None:
    rows = batch([b"a", b"b", b"c", b"x" * 300_000], topic=["other-topic", out, out, "other-topic"])
    with pytest.raises(SinkError, match="row 3 of task 0 is too large for other-topic"):
        write_rows(producer, None, iter([rows]), 0)


def test_a_row_without_a_topic_is_named(out: str, producer: Producer[Any, Any]) -> None:
    rows = batch([b"a", b"b"], topic=[out, None])
    with pytest.raises(SinkError, match="row 1 of task 4 has no topic"):
        write_rows(producer, None, iter([rows]), 4)


def test_a_topic_name_that_kafka_refuses_is_named(producer: Producer[Any, Any]) -> None:
    with pytest.raises(SinkError, match=r"row 1 of task 0 .*bad name"):
        write_rows(producer, None, iter([batch([b"a", b"b"], topic=["fine", "bad name"])]), 0)


def test_a_transaction_reports_the_row_that_failed_first(shared_broker: Broker) -> None:
    shared_broker.create_topic("small-transactions", config={"max.message.bytes": 10_000})
    with Producer(shared_broker.bootstrap_servers, transactional_id="small", linger_ms=0, buffer_memory=400_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        rows = (batch([b"a", LARGE if number == 1 else b"b"]) for number in range(3000))
        with pytest.raises(SinkError, match="row 3 of task 0 is too large for small-transactions"):
            write_rows(producer, "small-transactions", rows, 0)
        producer.abort_transaction()
