"""The sink: rows made by Spark into a topic with four partitions, at least once beside Spark's own sink, and exactly once."""

from __future__ import annotations

import time
from typing import Any

from bench.side_by_side.figures import at_least
from bench.spark.run import PARTITIONS, Run, label

CASES = ((100, 1_000_000, 2.0), (1000, 500_000, 1.3))
"""Bytes of a value, rows, goal."""

ID_SIZE = 10
UNIT = "M rows/s"


def measure(run: Run) -> None:
    """Rows per second for every size of records."""
    for size, full_count, goal in CASES:
        count = int(full_count * run.scale)
        rows = frame(run.spark, size, count)

        def once(name: str, rows: Any = rows, count: int = count) -> float:
            return rate(run, name, rows, count)

        def exactly(name: str, rows: Any = rows, count: int = count) -> float:
            return rate(run, name, rows, count, **({"exactlyOnce": "true"} if name == "ottla" else {}))

        what = f"write {label(size)}, {PARTITIONS} tasks"
        run.compare(f"sink:{size}", f"{what}, at least once", UNIT, once, at_least(goal))
        run.compare(f"sink:{size}-exactly", f"{what}, exactly once", UNIT, exactly)


def rate(run: Run, sink: str, rows: Any, count: int, **options: str) -> float:
    """Millions of rows per second, into a topic of its own.

    The topic is deleted after the write, so that the next one gets its memory. In a virtual machine the first use of memory can
    take ten times as long as the write, and one topic for all rounds would give every round more of that.
    """
    topic = run.broker.create_topic(PARTITIONS)
    try:
        began_s = time.perf_counter()
        write(run, sink, rows, topic, **options)
        return count / (time.perf_counter() - began_s) / 1e6
    finally:
        run.broker.delete_topic(topic)


def frame(spark: Any, size: int, count: int) -> Any:
    """Rows without keys, made where they are written, by copying a constant: rpad takes longer for 1 KB than either sink."""
    value = f"cast(concat(lpad(cast(id as string), {ID_SIZE}, '0'), repeat('x', {size - ID_SIZE})) as binary) as value"
    return spark.range(count, numPartitions=PARTITIONS).selectExpr(value)


def write(run: Run, sink: str, rows: Any, topic: str, **options: str) -> None:
    """Write all rows."""
    where = {"kafka.bootstrap.servers": run.broker.bootstrap, "topic": topic, **options}
    rows.write.format(sink).options(**where).mode("append").save()
