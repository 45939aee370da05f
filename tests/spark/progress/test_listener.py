"""The listener on real queries: offsets in a group, metrics, restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ottla import Admin, Producer
from ottla.spark import ProgressListener, offsets_behind_latest
from ottla.spark.errors import SparkOptionError
from ottla.spark.progress.listener import ProgressLine
from ottla.spark.progress.measures import Measures
from ottla.testing import Broker


def committed(broker: Broker, group: str) -> dict[Any, int]:
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.list_consumer_group_offsets([group])[group]
    return {each: offset.offset for each, offset in found.items() if offset is not None}


def test_a_query_and_its_restart_commit_what_they_read(shared_broker: Broker, topic: str, spark: Any, tmp_path: Path) -> None:
    other, group = f"{topic}-other", f"{topic}-group"
    shared_broker.create_topic(other, partitions=1)
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}

    reports: list[Any] = []

    def run(records: int) -> ProgressListener:
        with Producer(shared_broker.bootstrap_servers) as producer:
            for number in range(records):
                producer.send(topic, b"v", partition=number % 3)
            producer.send(other, b"w")
        load = spark.readStream.format("ottla").options(**where, startingOffsets="earliest")
        rows = load.options(subscribe=topic, maxOffsetsPerTrigger="2").load().union(load.option("subscribe", other).load())
        with ProgressListener(group, where, queries=["followed"]).attach(spark) as listener:
            writer = rows.writeStream.format("noop").queryName("followed").option("checkpointLocation", str(tmp_path / "c"))
            query = writer.trigger(availableNow=True).start()
            assert query.awaitTermination(120)
        reports.append(query.recentProgress)
        return listener

    run(6)
    assert committed(shared_broker, group) == {(topic, 0): 2, (topic, 1): 2, (topic, 2): 2, (other, 0): 1}
    listener = run(3)
    assert committed(shared_broker, group) == {(topic, 0): 3, (topic, 1): 3, (topic, 2): 3, (other, 0): 2}
    first, last = reports[0][0], reports[0][-1]
    # The first batch leaves a record in each of the three partitions.
    assert offsets_behind_latest(first)[0] == {
        "minOffsetsBehindLatest": "1",
        "maxOffsetsBehindLatest": "1",
        "avgOffsetsBehindLatest": "1.0",
    }
    assert [each["maxOffsetsBehindLatest"] for each in offsets_behind_latest(last)] == ["0", "0"]
    found = listener.metrics()["queries"]["followed"]
    assert (found["rows_total"], found["lag"]) == (4, 0)
    assert b'ottla_query_lag_records{query="followed"' in listener.metrics_text()


def test_a_group_needs_a_broker() -> None:
    with pytest.raises(SparkOptionError, match=r"kafka.bootstrap.servers is missing: a listener with a group"):
        ProgressListener("g")


ONE = Measures("id-1", "run-1", "orders", 4, 100, 4210.4, 412, ())


def test_a_terminal_shows_the_newest_line() -> None:
    written = StringIO()
    line = ProgressLine(Console(file=written, force_terminal=True, width=100))
    line.show(ONE, 48210)
    line.close()
    assert "orders · batch 4 · 48,210 rows · 4,210 rows/s · 0.41 s" in written.getvalue()


def test_a_pipe_shows_nothing() -> None:
    written = StringIO()
    line = ProgressLine(Console(file=written, force_terminal=False))
    line.show(ONE, 1)
    line.close()
    assert written.getvalue() == ""


HANG_S = 300
SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from ottla.spark import ProgressListener, decode, each_batch

servers, topic, folder = sys.argv[1:]
where = {"kafka.bootstrap.servers": servers}
spark = SparkSession.builder.remote("local[2]").getOrCreate()
listener = ProgressListener(f"{topic}-group", where).attach(spark)
stream = spark.readStream.format("ottla").options(**where, subscribe=topic, startingOffsets="earliest").load()
orders = decode(stream, value="json", schema="a long", dead_letters={**where, "topic": f"{topic}-dead"}).selectExpr("value.a")
writer = orders.writeStream.queryName("orders").option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True)
query = writer.foreachBatch(each_batch("ottla_delta", name="orders", path=folder + "/table")).start()
query.awaitTermination(240)
# The listener is left attached: the interpreter must end all the same, with everything committed.
"""


@pytest.mark.slow
def test_a_listener_that_is_left_attached_commits_and_lets_the_interpreter_end(
    shared_broker: Broker, topic: str, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake")
    shared_broker.create_topic(f"{topic}-dead", partitions=1)
    with Producer(shared_broker.bootstrap_servers) as producer:
        for value in (b'{"a": 1}', b"bad", b'{"a": 2}'):
            producer.send(topic, value, partition=1)
    command = [sys.executable, "-c", SCRIPT, shared_broker.bootstrap_servers, topic, str(tmp_path)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    with Admin(shared_broker.bootstrap_servers) as admin:
        found = admin.list_consumer_group_offsets([f"{topic}-group"])[f"{topic}-group"]
    assert {each.partition: offset and offset.offset for each, offset in found.items()} == {0: 0, 1: 3, 2: 0}
    assert [each.value for each in shared_broker.records(f"{topic}-dead")] == [b"bad"]
    rows = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table().to_pylist()
    assert sorted(row["a"] for row in rows) == [1, 2], json.dumps(rows)
