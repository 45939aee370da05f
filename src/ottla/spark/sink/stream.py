"""`StreamWriter`: writes a stream to topics, at least once or, with `exactlyOnce`, exactly once.

Spark makes one writer per batch for the tasks, and another in a process of the driver for each `commit` or `abort`. Only tasks
know the query and its run, by Spark's local properties, so they tell the driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.spark import clients
from ottla.spark.errors import SinkError, plain_errors
from ottla.spark.sink.columns import check_schema
from ottla.spark.sink.committing import Driver, abort_quietly
from ottla.spark.sink.messages import Held, Written
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.tasks import Job, write_in_transaction
from ottla.spark.sink.writing import write_rows

QUERY_ID, BATCH_ID, RUN_ID = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
"""Spark sets these for the jobs of a streaming query. The job group is the run's id."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream."""

    def __init__(self, options: SinkOptions, schema: Any) -> None:
        check_schema(schema, options.topic)
        self._options = options

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
        values = [None if context is None else context.getLocalProperty(name) for name in (QUERY_ID, RUN_ID, BATCH_ID)]
        query, run, batch = values
        if not query or not run or not batch:
            raise SinkError(
                "exactlyOnce needs Spark's ids of the query, the run and the batch, and this task has "
                f"{query}, {run} and {batch}: write with exactlyOnce=false"
            )
        return Held(write_in_transaction(self._options, Job(query, run, int(batch), task), iterator))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Make the batch visible. At least once, rows are visible when their task ends."""
        results = [each.result for each in messages if isinstance(each, Held)]
        if results:
            Driver(self._options).commit(results, batchId)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Abort what the batch has written. At least once, rows that were stored stay."""
        if not self._options.is_exactly_once:
            return
        result = next((each.result for each in messages if isinstance(each, Held)), None)
        query = query_in(self._options.checkpoint) if result is None else result.query
        if query is not None:  # else the query's next batch aborts what is left
            abort_quietly(Driver(self._options), query, "" if result is None else result.run, batchId)


def query_in(checkpoint: str | None) -> str | None:
    """The id of the query with this checkpoint folder, if it is on this machine's disk."""
    if checkpoint is None:
        return None
    folder = Path(checkpoint.removeprefix("file://").removeprefix("file:"))
    try:
        found: str = json.loads((folder / "metadata").read_text(encoding="utf-8"))["id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found
