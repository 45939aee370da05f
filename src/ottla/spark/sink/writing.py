"""Writing the rows of one task, in a Python worker of an executor. Errors name the row, its topic and the reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.producer.deliveries import Deliveries
from ottla.errors import KafkaError, RecordTooLargeError
from ottla.spark.errors import SinkError
from ottla.spark.sink.columns import Part, by_topic
from ottla.spark.sink.steps import reached

if TYPE_CHECKING:
    from ottla import Producer

PARTS_IN_FLIGHT = 1000
"""How many calls of send_many may be unanswered. buffer.memory bounds their rows, this the number of small ones."""
KEY_SHOWN_BYTES = 40


class Sent(NamedTuple):
    """Rows of one topic on their way."""

    part: Part
    deliveries: Deliveries


def write_rows(producer: Producer[Any, Any], topic: str | None, batches: Iterator[Any], task: int) -> int:
    """Send every row and wait until all are stored; returns how many. Raises for the first row that was not stored."""
    rows = 0
    waiting: deque[Sent] = deque()
    for batch in batches:
        for part in by_topic(batch, topic, rows, task):
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


def _named(part: Part, index: int, task: int) -> str:
    """How an error names a row: `row 17 of task 3 (key b'4711')`."""
    key = _bytes(part.rows.column("key")[index].as_py()) if "key" in part.rows.schema.names else None
    if key is None:
        return f"row {part.row_number(index)} of task {task}"
    shown = repr(key[:KEY_SHOWN_BYTES]) + ("…" if len(key) > KEY_SHOWN_BYTES else "")
    return f"row {part.row_number(index)} of task {task} (key {shown})"


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
