"""A task's side of exactly once: writes its rows in a transaction, flushes them, and leaves it open for the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import ottla
from ottla.errors import InvalidTxnTimeoutError, KafkaError, TransactionalIdAuthorizationError, UnsupportedVersionError
from ottla.spark.errors import SinkError
from ottla.spark.sink import protocol
from ottla.spark.sink.committing import ledger_of
from ottla.spark.sink.decision import HeldTransaction
from ottla.spark.sink.names import IdPool
from ottla.spark.sink.options import SinkOptions, TwoPhase
from ottla.spark.sink.protocol import NO_RECORD, TaskResult
from ottla.spark.sink.steps import reached
from ottla.spark.sink.writing import write_rows

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
            rows = write_rows(producer, options.topic, batches, job.task)
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
