"""The writers that Spark calls: a batch or a stream to topics, at least once or, with `exactlyOnce`, all rows or none.

Exactly once, a task writes its rows in a transaction, flushes them, and leaves it open for the driver (`commit.py`).

Spark hands the same `BatchWriter` to tasks and to `commit`, so a fresh id in it names the write. It makes one `StreamWriter`
per batch for the tasks, and another in a process of the driver for each `commit` or `abort`. Only tasks know the query and its
run, by Spark's local properties, so they tell the driver."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

import ottla
from ottla.errors import InvalidTxnTimeoutError, KafkaError, TransactionalIdAuthorizationError, UnsupportedVersionError
from ottla.spark import clients
from ottla.spark.errors import SinkError, SparkOptionError, plain_errors
from ottla.spark.sink import protocol
from ottla.spark.sink.commit import Driver, abort_quietly, ledger_of
from ottla.spark.sink.options import SinkOptions, TwoPhase
from ottla.spark.sink.protocol import NO_RECORD, HeldTransaction, IdPool, TaskResult
from ottla.spark.sink.rows import check_schema, write_rows
from ottla.spark.sink.steps import reached

if TYPE_CHECKING:
    from ottla import Producer


_pool: IdPool | None = None


class Job(NamedTuple):
    """Which task of what is running."""

    query: str
    run: str
    batch: int
    task: int
    is_once: bool = False
    """Whether it belongs to a batch write, which has no earlier record."""


def write_in_transaction(options: SinkOptions, job: Job, batches: Iterator[Any]) -> TaskResult:
    """Write the rows of a task, invisible to read_committed readers until the driver commits."""
    reached("task:started")
    seen = NO_RECORD
    if not job.is_once:
        found = ledger_of(options).read(job.query)
        seen = NO_RECORD if found is None else found.offset
        plan = protocol.plan_task(found, job.query, job.batch)
        if isinstance(plan, protocol.Refuse):
            raise SinkError(plan.reason)
        if isinstance(plan, protocol.Skip):
            rows = sum(batch.num_rows for batch in batches)
            return TaskResult(job.query, job.run, job.batch, job.task, rows, None, seen, is_skipped=True)
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return TaskResult(job.query, job.run, job.batch, job.task, 0, None, seen)
    held = _write(options, job, seen, chain([first], batches))
    return TaskResult(job.query, job.run, job.batch, job.task, held.rows, held, seen)


def _write(options: SinkOptions, job: Job, seen: int, batches: Iterator[Any]) -> HeldTransaction:
    global _pool
    if _pool is None:
        _pool = IdPool()
    transactional_id = _pool.take(job.query, job.batch)
    producer: Producer[Any, Any] = ottla.Producer(config={**options.task_client, "transactional.id": transactional_id})
    try:
        _init(producer, options)
        reached("task:initialized")
        producer.begin_transaction()
        try:
            rows = write_rows(producer, options.topic, batches, job.task, options.registry)
            reached("task:flushed")
            if not job.is_once and protocol.is_given_up(ledger_of(options).read(job.query), seen, job.batch):
                raise SinkError(f"batch {job.batch} of query {job.query} was given up while task {job.task} wrote its rows")
        except BaseException:
            with suppress(KafkaError):
                producer.abort_transaction()
            raise
        identity = producer.detach_transaction()
    finally:
        producer.close(timeout=1)
    reached("task:detached")
    return HeldTransaction(*identity, job.task, rows)


def _init(producer: Producer[Any, Any], options: SinkOptions) -> None:
    try:
        producer.init_transactions()
    except InvalidTxnTimeoutError as error:
        raise SinkError(
            f"the cluster refuses kafka.transaction.timeout.ms={options.client['transaction.timeout.ms']}: its "
            "transaction.max.timeout.ms is lower. Set the option to that value"
        ) from error
    except (UnsupportedVersionError, TransactionalIdAuthorizationError) as error:
        if options.two_phase is not TwoPhase.TRUE:
            raise
        raise SinkError(
            f"twoPhaseCommit=true, but the cluster does not allow it: {error}. With twoPhaseCommit=auto the sink does without"
        ) from error


@dataclass
class Written(WriterCommitMessage):
    """A task of an at-least-once writer has stored its rows."""

    rows: int


@dataclass
class Held(WriterCommitMessage):
    """A task of an exactly-once writer has left its transaction open."""

    result: TaskResult


def write_at_least_once(options: SinkOptions, batches: Iterator[Any], task: int) -> int:
    """Write the rows of a task, each visible when it is stored; returns how many."""
    return write_rows(clients.producer(options.task_client), options.topic, batches, task, options.registry)


ONLY_BATCH = 0


class BatchWriter(DataSourceArrowWriter):
    """Writes a batch."""

    def __init__(self, options: SinkOptions, schema: Any, overwrite: bool) -> None:
        if overwrite:
            raise SparkOptionError('mode("overwrite") cannot empty a topic: write with mode("append")')
        check_schema(schema, options.topic, options.registry)
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
            return Written(write_at_least_once(self._options, iterator, task))
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


QUERY_ID, BATCH_ID, RUN_ID = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
"""Spark sets these for the jobs of a streaming query. The job group is the run's id."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream."""

    def __init__(self, options: SinkOptions, schema: Any) -> None:
        check_schema(schema, options.topic, options.registry)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        with plain_errors(SinkError, self._options.task_client):
            return self._write(iterator)

    def _write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        if not self._options.is_exactly_once:
            return Written(write_at_least_once(self._options, iterator, task))
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
