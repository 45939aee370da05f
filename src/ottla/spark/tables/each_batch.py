"""`each_batch`: tables in foreachBatch, once for each batch.

For streams with `outputMode("update")`, which Spark refuses for Python data sources, and for queries with several sinks: call
the functions of several tables one after the other.

    counts.writeStream.outputMode("update").foreachBatch(
        each_batch("ottla_postgres", url=…, table="counts", writeMode="upsert", keys="city")
    )
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.spark.errors import SparkOptionError

QUERY_ID = "sql.streaming.queryId"


def each_batch(format: str, *, name: str | None = None, **options: str) -> Callable[[Any, int], None]:
    """A function for foreachBatch that writes each batch to a table, and a replayed one not again.

    With the format `ottla` it writes to topics, at least once: a replayed batch is written again.

    `name` takes the place of the query's id. It is needed under Spark Connect, where the id cannot be seen. Choose another name
    when a query starts over with a new checkpoint: its batches are counted from 0 again, and would be taken for replays.
    """

    def write(batch: Any, batch_id: int) -> None:
        if format == "ottla":
            batch.write.format(format).mode("append").options(**options).save()
            return
        options_of_batch = {**options, "txnAppId": name or _query_id(batch), "txnVersion": str(batch_id)}
        batch.write.format(format).mode("append").options(**options_of_batch).save()

    return write


def _query_id(batch: Any) -> str:
    context = getattr(batch.sparkSession, "_sc", None)
    found = None if context is None else context.getLocalProperty(QUERY_ID)
    if not found:
        raise SparkOptionError("each_batch cannot see the query's id here: give it a name that only this query uses")
    return str(found)
