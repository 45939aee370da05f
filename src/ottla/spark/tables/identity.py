"""Which batch of which query a task writes: what makes a replayed batch known.

Spark tells the tasks of a stream in local properties. After a failure the same query id and batch id come again with the same
data; the query id lives in the checkpoint, so a query that starts over with a new checkpoint has a new one. Batch writes, also
those in foreachBatch, say it with the options `txnAppId` and `txnVersion`, as with Delta's own writer: one foreachBatch call
may write to the same table several times, so its batch id alone would not do.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

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
