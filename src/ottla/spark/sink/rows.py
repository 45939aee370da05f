"""The rows of one task: their columns checked once, cut by topic and sent, without an object per record.

Errors name the row, its topic and the reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.producer.deliveries import Deliveries
from ottla.errors import KafkaError, RecordTooLargeError
from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.registry.options import NO_REGISTRY, SIDES, RegistryOptions
from ottla.spark.schema import HEADERS
from ottla.spark.sink.steps import reached

if TYPE_CHECKING:
    from ottla import Producer


WANTED = {
    "topic": {"string"},
    "key": {"string", "binary"},
    "value": {"string", "binary"},
    "partition": {"int"},
    "headers": {HEADERS.simpleString()},
}


def check_schema(schema: Any, topic: str | None, registry: RegistryOptions = NO_REGISTRY) -> None:
    """Refuse columns that records do not have, or that have another type."""
    encoded = {each.side for each in registry.sides}
    kinds = {field.name: field.dataType.simpleString() for field in schema}
    unknown = sorted(kinds.keys() - WANTED.keys())
    if unknown:
        raise SparkOptionError(
            f"the sink knows no column {', '.join(unknown)}: records have {', '.join(WANTED)}. Select those, "
            "for example with to_json(struct(*)) AS value"
        )
    for name, kind in kinds.items():
        if kind not in WANTED[name] and name not in encoded:
            what = f"; cast it, or say how it is written with {name}.format" if name in SIDES else "; cast it"
            raise SparkOptionError(f"the column {name} is {kind}: it must be {' or '.join(sorted(WANTED[name]))}{what}")
    if "value" not in kinds:
        raise SparkOptionError(f"the sink needs a column value; there is {', '.join(kinds) or 'none'}")
    if topic is None and "topic" not in kinds:
        raise SparkOptionError("the sink does not know where to write: give the option topic, or a column topic")
    if encoded:
        from ottla.spark.registry.writing import check_columns

        check_columns(registry, schema)


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


PARTS_IN_FLIGHT = 1000
"""How many calls of send_many may be unanswered. buffer.memory bounds their rows, this the number of small ones."""
KEY_SHOWN_BYTES = 40


class Sent(NamedTuple):
    """Rows of one topic on their way."""

    part: Part
    deliveries: Deliveries


def write_rows(
    producer: Producer[Any, Any],
    topic: str | None,
    batches: Iterator[Any],
    task: int,
    registry: RegistryOptions = NO_REGISTRY,
) -> int:
    """Send every row and wait until all are stored; returns how many. Raises for the first row that was not stored."""
    encoder = None
    if registry.sides:
        from ottla.spark.registry.writing import encoder_of

        encoder = encoder_of(registry)
    rows = 0
    waiting: deque[Sent] = deque()
    for batch in batches:
        for part in by_topic(batch, topic, rows, task):
            if encoder is not None:
                encoded = encoder.encoded(part.topic, part.rows, partial(_numbered, part, task))
                part = replace(part, rows=encoded)
            sent = Sent(part, Deliveries())
            waiting.append(sent)
            try:
                producer.send_many(part.topic, part.rows, into=sent.deliveries)
            except (KafkaError, ValueError, TypeError) as error:
                # In a transaction, the failure of an earlier row makes later ones fail: that one is the reason.
                earlier = [each for each in waiting if each.deliveries.done()]
                for each in earlier:
                    _check(each, task)
                if isinstance(error, ValueError):
                    _check_partitions(producer, part, task)
                raise _failed(part, len(sent.deliveries), error, task) from error
        rows += batch.num_rows
        # Rows are kept for the error that names one. Dropped once stored, their memory serves the batches to come.
        while waiting and (waiting[0].deliveries.done() or len(waiting) > PARTS_IN_FLIGHT):
            _check(waiting.popleft(), task)
    reached("task:sent")
    producer.flush()
    while waiting:
        _check(waiting.popleft(), task)
    return rows


def _check(sent: Sent, task: int) -> None:
    failure = sent.deliveries.first_failure()
    if failure is not None:
        raise _failed(sent.part, *failure, task) from failure[1]


def _check_partitions(producer: Producer[Any, Any], part: Part, task: int) -> None:
    """Name the row whose partition the topic does not have.

    Only after `send_many` has refused it: the producer asks for new metadata first, because partitions may have been added.
    """
    if part.highest_partition() is None:
        return
    count = len(producer.partitions_for(part.topic))
    row = part.first_row_outside(count)
    if row is not None:
        number = part.rows.column("partition")[row].as_py()
        raise SinkError(
            f"{_named(part, row, task)} has partition {number}, but {part.topic} has {count} partitions: 0 to {count - 1}"
        )


def _failed(part: Part, index: int, error: Exception, task: int) -> SinkError:
    if index >= part.rows.num_rows:
        return SinkError(f"task {task} could not write to {part.topic}: {error}")
    if isinstance(error, RecordTooLargeError):
        sizes = ", ".join(
            f"{name} {len(value)} bytes"
            for name in ("key", "value")
            if name in part.rows.schema.names and (value := _bytes(part.rows.column(name)[index].as_py())) is not None
        )
        return SinkError(f"{_named(part, index, task)} is too large for {part.topic} ({sizes}): {error}")
    return SinkError(f"{_named(part, index, task)} was not written to {part.topic}: {error}")


def _numbered(part: Part, task: int, index: int) -> str:
    return f"row {part.row_number(index)} of task {task}"


def _named(part: Part, index: int, task: int) -> str:
    """How an error names a row: `row 17 of task 3 (key b'4711')`."""
    key = _bytes(part.rows.column("key")[index].as_py()) if "key" in part.rows.schema.names else None
    if key is None:
        return _numbered(part, task, index)
    shown = repr(key[:KEY_SHOWN_BYTES]) + ("…" if len(key) > KEY_SHOWN_BYTES else "")
    return f"{_numbered(part, task, index)} (key {shown})"


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
