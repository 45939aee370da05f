"""Streams: how long a query takes to drain a burst, and how old a record is when it has passed from topic to topic."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.clients.__main__ import finish_child, start_child
from bench.clients.results import percentile
from bench.side_by_side.figures import Figure
from bench.spark.run import PARTITIONS, Run, say

BURST_RECORDS = 1_000_000
PACED_PER_S, PACED_RECORDS, PACED_WARM_UP = 200, 3_000, 600
WAIT_S = 120.0


def measure_burst(run: Run) -> None:
    """Seconds from the first record of a burst until a running query has processed the last."""
    count = int(BURST_RECORDS * run.scale)
    what = f"burst of {count:,} records of 100 B, until a running query has read it"
    run.compare("burst", what, "s", lambda name: drain(run, name, count))


def drain(run: Run, source: str, count: int) -> float:
    topic = run.broker.create_topic(PARTITIONS)
    with query(run, source, topic, "noop") as running:
        await_progress(running, 0)
        began_s = time.perf_counter()
        run.fill(topic, 100, count)
        await_progress(running, count)
        took_s = time.perf_counter() - began_s
    run.broker.delete_topic(topic)
    return took_s


def measure_latency(run: Run) -> None:
    """The age of records that a query passes on from topic to topic."""
    pairs: dict[str, tuple[list[float], list[float]]] = {"p50": ([], []), "p99": ([], [])}
    for number in range(run.rounds):
        for side, name in run.sides():
            ages_ms = pass_on(run, name)
            for figure, share in (("p50", 0.5), ("p99", 0.99)):
                pairs[figure][side].append(percentile(ages_ms, share))
            say(f"latency, round {number + 1}: {name} p50 {pairs['p50'][side][-1]:.0f} ms, p99 {pairs['p99'][side][-1]:.0f} ms")
    for figure, samples in pairs.items():
        what = f"topic to topic, {PACED_PER_S} records/s, {figure} of a record's age"
        run.results.add([Figure(f"latency:{figure}", what, "ms", *samples)])


def pass_on(run: Run, source: str) -> list[float]:
    """The ages of all records but the first, in milliseconds."""
    count = max(int(PACED_RECORDS * run.scale), PACED_WARM_UP + 100)
    into, out = run.broker.create_topic(1), run.broker.create_topic(1)
    where = {"use": "Ottla", "bootstrap": run.broker.bootstrap, "count": count}
    with query(run, source, into, source, out) as running:
        await_progress(running, 0)
        reader = start_child("awaited", {**where, "topic": out, "partitions": 1})
        assert reader.stdout is not None
        reader.stdout.readline()  # it waits for records
        finish_child(start_child("paced", {**where, "topic": into, "rate": PACED_PER_S}), "the paced producer")
        found = finish_child(reader, "the reader of the results")
    for topic in (into, out):
        run.broker.delete_topic(topic)
    return [each / 1000 for each in found["us"][PACED_WARM_UP:]]


@contextmanager
def query(run: Run, source: str, topic: str, sink: str, out: str = "") -> Iterator[Any]:
    """A query that reads a topic from its beginning and writes to a sink, until the block ends."""
    where = {"kafka.bootstrap.servers": run.broker.bootstrap}
    rows = run.spark.readStream.format(source).options(**where, subscribe=topic, startingOffsets="earliest").load()
    writer = rows.writeStream.format("noop")
    if sink != "noop":
        writer = rows.select("key", "value").writeStream.format(sink).options(**where, topic=out)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-checkpoint-") as folder:
        running = writer.option("checkpointLocation", folder).start()
        try:
            yield running
        finally:
            running.stop()


def await_progress(running: Any, records: int) -> None:
    """Wait until the query has read this many records; with 0, until it waits for the first."""
    deadline_s = time.monotonic() + WAIT_S
    read = 0
    seen = -1
    while read < records or not (records or running.status["message"].startswith("Waiting")):
        if time.monotonic() > deadline_s or not running.isActive:
            raise SystemExit(f"the query has read {read} of {records} records: {running.exception() or running.status}")
        for progress in running.recentProgress:
            if progress.batchId > seen:
                seen, read = progress.batchId, read + progress.numInputRows
        time.sleep(0.01)
