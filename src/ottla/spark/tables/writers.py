"""The writers of all tables: tasks write what nobody sees yet, the driver commits the batch once.

A table brings a `Target`: `write_task` runs in the executors and returns what it has written; `commit` runs in the driver with
the results of all tasks that succeeded, and must be atomic and do nothing for a batch that is in the table already.

A batch is known by the query's id and its number, which Spark tells the tasks of a stream in local properties. After a failure
the same two come again with the same data; the query's id lives in the checkpoint, so a new checkpoint means a new one. Batch
writes, also those in foreachBatch, say it with the options `txnAppId` and `txnVersion`, as with Delta's own writer: one call
may write to the same table several times, so its batch id alone would not do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.spark.errors import SparkOptionError


class BatchIdentity(NamedTuple):
    """A batch, by what stays the same when it is written again."""

    query_id: str
    batch_id: int


class TaskIdentity(NamedTuple):
    """One attempt of one task of a batch."""

    batch: BatchIdentity | None
    partition: int
    attempt: str
    """Differs between attempts of the same task, speculative ones too, and between runs."""


def identity_of_options(options: Mapping[str, str]) -> BatchIdentity | None:
    """What `txnAppId` and `txnVersion` say; None without them."""
    name, version = options.get("txnAppId"), options.get("txnVersion")
    if name is None and version is None:
        return None
    if not name or version is None or not str(version).isdecimal():
        raise SparkOptionError(
            "txnAppId and txnVersion belong together: the name of the writer and a number that grows, such as the batch id"
        )
    return BatchIdentity(name, int(version))


def task_identity(given: BatchIdentity | None, is_streaming: bool) -> TaskIdentity:
    """The identity of the task that this Python worker runs."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    batch = given
    if is_streaming and given is None:
        query_id = context.getLocalProperty("sql.streaming.queryId")
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        batch = BatchIdentity(query_id, int(batch_id))
    return TaskIdentity(batch, context.partitionId(), uuid.uuid4().hex[:12])


class Target(Protocol):
    """A table to write to. Pickled to the executors, so it holds no connection."""

    def write_task(self, batches: Iterator[Any], task: TaskIdentity) -> Any:
        """Write the record batches of one task where readers do not see them; None if there was no row."""

    def commit(self, written: list[Any], batch: BatchIdentity | None, is_overwrite: bool) -> None:
        """Make everything visible at once, unless `batch` is in the table already."""

    def discard(self, written: list[Any], may_be_committed: bool = False) -> None:
        """Remove what tasks have written of a batch that is given up, but nothing that a commit may have made visible."""


@dataclass
class TaskWritten(WriterCommitMessage):
    """What a task tells the driver."""

    batch: BatchIdentity | None
    written: Any


def in_utc(batch: Any) -> Any:
    """The same rows with timestamps in UTC: Spark sends them in the time zone of the session."""
    import pyarrow as pa

    return batch.cast(pa.schema([field.with_type(_utc(field.type)) for field in batch.schema]))


def _utc(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, tz="UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_utc(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_utc(kind.key_type), kind.item_field.with_type(_utc(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_utc(kind.value_type)))
    return kind


class _Writing:
    def __init__(self, target: Target, given: BatchIdentity | None, is_overwrite: bool) -> None:
        self._target = target
        self._given = given
        self._is_overwrite = is_overwrite

    def _write(self, batches: Iterator[Any], is_streaming: bool) -> TaskWritten:
        task = task_identity(self._given, is_streaming)
        return TaskWritten(task.batch, self._target.write_task(map(in_utc, batches), task))

    def _commit(self, messages: list[Any]) -> None:
        found = [each for each in messages if each is not None]
        written = [each.written for each in found if each.written is not None]
        if found and (written or self._is_overwrite):
            self._target.commit(written, found[0].batch, self._is_overwrite)

    def _abort(self, messages: list[Any]) -> None:
        written = [each.written for each in messages if each is not None and each.written is not None]
        if written:
            # Spark calls abort also if commit has raised or its process has died, which can be after the commit is durable.
            # Spark calls commit only if it has the message of every task.
            self._target.discard(written, may_be_committed=all(each is not None for each in messages))


class TableBatchWriter(_Writing, DataSourceArrowWriter):
    """Writes a DataFrame."""

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        """Write the rows of a task."""
        return self._write(iterator, is_streaming=False)

    def commit(self, messages: list[Any]) -> None:
        """Commit the rows of all tasks."""
        self._commit(messages)

    def abort(self, messages: list[Any]) -> None:
        """Forget the rows of all tasks."""
        self._abort(messages)


class TableStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writes the batches of a stream, each exactly once."""

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        """Write the rows of a task."""
        return self._write(iterator, is_streaming=True)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Commit the rows of all tasks."""
        self._commit(messages)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Forget the rows of all tasks."""
        self._abort(messages)
