"""Rows to write: their columns checked once, then cut by topic, without an object per record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.schema import HEADERS

WANTED = {
    "topic": {"string"},
    "key": {"string", "binary"},
    "value": {"string", "binary"},
    "partition": {"int"},
    "headers": {HEADERS.simpleString()},
}


def check_schema(schema: Any, topic: str | None) -> None:
    """Refuse columns that records do not have, or that have another type."""
    kinds = {field.name: field.dataType.simpleString() for field in schema}
    unknown = sorted(kinds.keys() - WANTED.keys())
    if unknown:
        raise SparkOptionError(
            f"the sink knows no column {', '.join(unknown)}: records have {', '.join(WANTED)}. Select those, "
            "for example with to_json(struct(*)) AS value"
        )
    for name, kind in kinds.items():
        if kind not in WANTED[name]:
            raise SparkOptionError(f"the column {name} is {kind}: it must be {' or '.join(sorted(WANTED[name]))}; cast it")
    if "value" not in kinds:
        raise SparkOptionError(f"the sink needs a column value; there is {', '.join(kinds) or 'none'}")
    if topic is None and "topic" not in kinds:
        raise SparkOptionError("the sink does not know where to write: give the option topic, or a column topic")


@dataclass(frozen=True)
class Part:
    """The rows of a batch that go to one topic, in their order."""

    topic: str
    rows: pa.RecordBatch
    """Their columns without `topic`."""
    first_row: int
    """The number of the batch's first row in its task."""
    chosen: pa.Array | None = None
    """The places of the rows in the batch; None if it is all of them."""

    def row_number(self, index: int) -> int:
        """The number in its task of one of the rows."""
        return self.first_row + (index if self.chosen is None else self.chosen[index].as_py())

    def highest_partition(self) -> int | None:
        """The highest number in the column `partition`, or None if no row has one."""
        if "partition" not in self.rows.schema.names:
            return None
        found: int | None = pc.max(self.rows.column("partition")).as_py()
        return found

    def first_row_outside(self, partitions: int) -> int | None:
        """The index of the first row whose partition a topic with so many partitions does not have."""
        column = self.rows.column("partition")
        outside = pc.or_(pc.less(column, 0), pc.greater_equal(column, partitions))
        found: int = pc.index(pc.fill_null(outside, False), True).as_py()
        return None if found < 0 else found


def by_topic(batch: pa.RecordBatch, topic: str | None, first_row: int, task: int = 0) -> Iterator[Part]:
    """The rows of each topic, in their order. The option `topic` wins over the column, as in Spark's own sink."""
    names = [name for name in batch.schema.names if name != "topic"]
    rest = batch.select(names)
    if topic is not None:
        yield Part(topic, rest, first_row)
        return
    topics = batch.column(batch.schema.names.index("topic"))
    if topics.null_count:
        row = first_row + pc.index(pc.is_null(topics), True).as_py()
        raise SinkError(
            f"row {row} of task {task} has no topic: its column topic is null, and the option topic is not set. "
            "Fill the column, or filter these rows"
        )
    found = pc.unique(topics).to_pylist()
    for name in found:
        if len(found) == 1:
            yield Part(name, rest, first_row)
        else:
            chosen = pc.indices_nonzero(pc.equal(topics, name))
            yield Part(name, rest.take(chosen), first_row, chosen)
