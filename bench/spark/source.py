"""The source: batch reads into a sink that drops the rows, of all columns, of one column, and of more and more partitions."""

from __future__ import annotations

from bench.side_by_side.figures import at_least
from bench.spark.run import PARTITIONS, Run, label

CASES = ((100, 1_000_000, 3.0), (1000, 1_000_000, 2.0))
"""Bytes of a value, records, goal."""
GROWING = (1, 4, 16, 64)
GROWING_RECORDS = 1_000_000


def measure(run: Run) -> None:
    """Rows per second for every size of records."""
    for size, full_count, goal in CASES:
        count = int(full_count * run.scale)
        topic = run.filled_topic(size, count)
        what = f"read {label(size)}, {PARTITIONS} partitions"
        run.rates(
            f"source:{size}", f"{what}, 7 columns", count, lambda name, topic=topic: read(run, name, topic), at_least(goal)
        )
        run.rates(
            f"source:{size}-offset",
            f"{what}, column offset only",
            count,
            lambda name, topic=topic: read(run, name, topic, "offset"),
        )
        run.broker.delete_topic(topic)


def measure_partitions(run: Run) -> None:
    """The same records in more and more partitions: each is a task at least."""
    count = int(GROWING_RECORDS * run.scale)
    for partitions in GROWING:
        topic = run.filled_topic(100, count, partitions)
        what = f"read {label(100)}, {partitions} partition{'s' if partitions > 1 else ''}"
        run.rates(f"partitions:{partitions}", what, count, lambda name, topic=topic: read(run, name, topic))
        run.broker.delete_topic(topic)


def read(run: Run, source: str, topic: str, column: str | None = None) -> None:
    """Read the whole topic, or one column of it: ours by its schema, theirs, which has a fixed one, by a selection."""
    reader = run.spark.read.format(source).option("kafka.bootstrap.servers", run.broker.bootstrap).option("subscribe", topic)
    if column is not None and source == "ottla":
        reader = reader.schema(f"{column} bigint")
    frame = reader.load()
    (frame if column is None else frame.select(column)).write.format("noop").mode("overwrite").save()
