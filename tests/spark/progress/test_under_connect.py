"""Decoding, dead letters, the listener and tables under Spark Connect, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla import Admin, Producer
from ottla.testing import Broker

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
