"""Columns of the sink: which are accepted, and how rows are cut by topic."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType

from ottla.spark.errors import SparkOptionError
from ottla.spark.schema import HEADERS
from ottla.spark.sink.rows import by_topic, check_schema


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
