"""`BatchWriter`: writes a DataFrame to topics, at least once or, with `exactlyOnce`, all rows or none.

Spark hands the same writer to tasks and to `commit`, so a fresh id in it names the write.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ottla.spark import clients
from ottla.spark.errors import SinkError, SparkOptionError, plain_errors
from ottla.spark.sink.columns import check_schema
from ottla.spark.sink.committing import Driver, abort_quietly
from ottla.spark.sink.messages import Held, Written
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.tasks import Job, write_in_transaction
from ottla.spark.sink.writing import write_rows

ONLY_BATCH = 0


class BatchWriter(DataSourceArrowWriter):
    """Writes a batch."""

    def __init__(self, options: SinkOptions, schema: Any, overwrite: bool) -> None:
        if overwrite:
            raise SparkOptionError('mode("overwrite") cannot empty a topic: write with mode("append")')
        check_schema(schema, options.topic)
        self._options = options
        self._id = str(uuid.uuid4())

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        with plain_errors(SinkError, self._options.task_client):
            return self._write(iterator)

    def _write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        if not self._options.is_exactly_once:
            rows = write_rows(clients.producer(self._options.task_client), self._options.topic, iterator, task)
            return Written(rows)
        job = Job(self._id, self._id, ONLY_BATCH, task, is_once=True)
        return Held(write_in_transaction(self._options, job, iterator))

    def commit(self, messages: Sequence[Any]) -> None:
        """Make all rows visible. At least once, rows are visible when their task ends."""
        results = [each.result for each in messages if isinstance(each, Held)]
        if any(each.transaction is not None for each in results):
            Driver(self._options, is_once=True).commit(results, ONLY_BATCH)

    def abort(self, messages: Sequence[Any]) -> None:
        """Abort what was written. At least once, rows that were stored stay."""
        if self._options.is_exactly_once:
            abort_quietly(Driver(self._options, is_once=True), self._id, self._id, ONLY_BATCH)
