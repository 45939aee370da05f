"""Batches as the record batches that Spark takes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ottla import TopicPartition
from ottla.client.consumer.reader import Views
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.schema import SOURCE_COLUMNS, source_schema
from ottla.spark.source import columns
from ottla.spark.source.columns import checked_names, record_batches

P0 = TopicPartition("orders", 3)
ALL = list(SOURCE_COLUMNS)


def batch(first: int, count: int, **headers: bytes | None) -> BatchView:
    pairs = tuple(headers.items())
    return BatchView(build_batch([Record(first + n, 1000 + n, b"k", b"v%d" % (first + n), pairs) for n in range(count)]))


def test_the_schema_is_the_one_that_spark_expects() -> None:
    found = next(record_batches(P0, Views(0, [batch(0, 2)]), 2, ALL))
    assert found.schema.equals(to_arrow_schema(source_schema(True), timezone="UTC"))


def test_every_column_is_there() -> None:
    with_null = BatchView(build_batch([Record(7, 5, None, None, (("a", b"1"), ("b", None)))]))
    found = list(record_batches(P0, Views(5, [batch(5, 2), with_null]), 8, ALL))
    rows = [row for each in found for row in each.to_pylist()]
    assert [row["offset"] for row in rows] == [5, 6, 7]
    assert [row["value"] for row in rows] == [b"v5", b"v6", None]
    assert [row["key"] for row in rows] == [b"k", b"k", None]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {("orders", 3, 0)}
    assert [round(row["timestamp"].timestamp() * 1000) for row in rows] == [1000, 1001, 5]
    assert [row["headers"] for row in rows] == [None, None, [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]]


def test_only_rows_of_the_range_are_kept() -> None:
    views = Views(3, [batch(0, 5), batch(10, 5)])
    found = [offset for each in record_batches(P0, views, 12, ["offset"]) for offset in each.column("offset").to_pylist()]
    assert found == [3, 4, 10, 11]
    assert list(record_batches(P0, Views(5, [batch(0, 5)]), 12, ["offset"])) == []


def test_record_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "ROWS_MAX", 10)
    views = Views(0, [batch(number * 4, 4) for number in range(6)])
    assert [each.num_rows for each in record_batches(P0, views, 24, ["offset", "topic"])] == [8, 8, 8]


def test_a_narrow_schema_has_its_columns_in_its_order() -> None:
    schema = StructType().add("timestamp", "timestamp").add("value", "binary")
    found = next(record_batches(P0, Views(0, [batch(0, 3)]), 3, checked_names(schema)))
    assert found.schema.names == ["timestamp", "value"]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("amount", "integer", "the source has no column amount: there are key, value"),
        ("value", "string", "the column value is binary, not string: cast it after reading"),
    ],
)
def test_columns_that_are_not_there_are_refused(name: str, kind: str, words: str) -> None:
    with pytest.raises(SparkOptionError, match=words):
        checked_names(StructType().add(name, kind))


def test_damage_is_told_with_its_place() -> None:
    good, bad = batch(0, 2), bytearray(batch(2, 2).data)
    bad[-1] = 0x7F  # the count of headers of the last record
    reading: Any = record_batches(P0, Views(0, [good, BatchView(bad)]), 4, ["offset"])
    assert next(reading).num_rows == 2  # what is good comes first
    with pytest.raises(SourceError, match=r"orders-3 is damaged between offsets 2 and 3: .* skip them with startingOffsets 4"):
        next(reading)


@pytest.mark.parametrize("time_ms", [1 << 62, -(1 << 62)])
def test_a_timestamp_that_spark_cannot_hold_is_told_with_its_place(time_ms: int) -> None:
    views = Views(5, [batch(5, 1), BatchView(build_batch([Record(6, time_ms, b"k", b"v", ())]))])
    with pytest.raises(SourceError, match=f"the record of orders-3 at offset 6 has the timestamp {time_ms} ms, which"):
        list(record_batches(P0, views, 7, ["timestamp"]))
    assert [each.column("value").to_pylist() for each in record_batches(P0, views, 7, ["value"])] == [[b"v5", b"v"]]
