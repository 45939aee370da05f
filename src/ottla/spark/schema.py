"""The columns of the source and the sink, as Spark's own Kafka source and sink have them."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
SOURCE_COLUMNS: dict[str, Any] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
}


def source_schema(has_headers: bool) -> StructType:
    """The columns that a reader gives without `.schema(…)`."""
    names = [name for name in SOURCE_COLUMNS if has_headers or name != "headers"]
    return StructType([StructField(name, SOURCE_COLUMNS[name]) for name in names])
