"""The source: a batch read of all seven columns into a sink that drops them, and narrower and compressed reads of ours."""

from __future__ import annotations

from bench.spark.run import PARTITIONS, Run

CASES = ((100, 1_000_000, 3.0), (1000, 1_000_000, 2.0))
"""Bytes of a value, records, goal."""


def measure(run: Run) -> None:
    """Rows of the source, for every size of records."""
    for size, full_count, goal in CASES:
        count = int(full_count * run.scale)
        topic = run.filled_topic(size, count)
        label = "1 KB" if size == 1000 else f"{size} B"
        row = run.results.row(f"source-{size}", f"read {label}, {PARTITIONS} partitions, 7 columns → noop", goal)
        run.compare(row, count, lambda: read(run, "kafka", topic), lambda: read(run, "ottla", topic))  # noqa: B023
        narrow = run.results.row(f"source-{size}-narrow", f"read {label}, column offset only → noop")
        run.compare(
            narrow,
            count,
            lambda: read(run, "kafka", topic, "offset"),  # noqa: B023
            lambda: read(run, "ottla", topic, "offset"),  # noqa: B023
        )
        run.broker.delete_topic(topic)


def read(run: Run, source: str, topic: str, column: str | None = None) -> None:
    """Read the whole topic, or one column of it: ours by its schema, theirs, which has a fixed one, by a selection."""
    reader = run.spark.read.format(source).option("kafka.bootstrap.servers", run.broker.bootstrap).option("subscribe", topic)
    if column is not None and source == "ottla":
        reader = reader.schema(f"{column} bigint")
    frame = reader.load()
    (frame if column is None else frame.select(column)).write.format("noop").mode("overwrite").save()
