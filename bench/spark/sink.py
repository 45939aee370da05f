"""The sink: rows made by Spark into a topic with four partitions, at least once beside Spark's own sink, and exactly once."""

from __future__ import annotations

from typing import Any

PARTITIONS = 4
CASES = ((100, 1_000_000, 2.0), (1000, 500_000, 1.3))
"""Bytes of a value, rows, goal."""


def measure(run: Any) -> None:
    """Rows of the sink, for every size of records. `run` is the `Run` of `bench/spark/run.py`."""
    for size, full_count, goal in CASES:
        count = int(full_count * run.scale)
        label = "1 KB" if size == 1000 else f"{size} B"
        rows = frame(run.spark, size, count)
        topic = run.broker.create_topic(PARTITIONS)
        once = run.results.row(f"sink-{size}", f"write {label}, {PARTITIONS} tasks, at least once", goal)
        run.compare(once, count, lambda: write(run, "kafka", rows, topic), lambda: write(run, "ottla", rows, topic))  # noqa: B023
        exactly = run.results.row(f"sink-{size}-exactly", f"write {label}, exactly once (Spark's: at least once)")
        run.compare(
            exactly,
            count,
            lambda: write(run, "kafka", rows, topic),  # noqa: B023
            lambda: write(run, "ottla", rows, topic, exactlyOnce="true"),  # noqa: B023
        )
        run.broker.delete_topic(topic)


def frame(spark: Any, size: int, count: int) -> Any:
    """Rows without keys, made where they are written."""
    value = f"cast(rpad(cast(id as string), {size}, 'x') as binary) as value"
    return spark.range(count, numPartitions=PARTITIONS).selectExpr(value)


def write(run: Any, sink: str, rows: Any, topic: str, **options: str) -> None:
    """Write all rows."""
    where = {"kafka.bootstrap.servers": run.broker.bootstrap, "topic": topic, **options}
    rows.write.format(sink).options(**where).mode("append").save()
