"""Modes that Spark's own Kafka sink takes."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.spark import pyspark_patches
from ottla.spark.errors import SparkOptionError
from ottla.spark.pyspark_patches import update_batches
from ottla.testing import Broker


def test_writes_without_a_mode_append(spark: Any, shared_broker: Broker, topic: str, tmp_path: Path) -> None:
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "topic": topic}
    rows = spark.range(1).selectExpr("'v' as value")
    rows.write.format("ottla").options(**where).save()
    rows.write.mode("errorifexists").format("ottla").options(**where).save()
    rows.write.save(format="ottla", **where)
    assert len(shared_broker.records(topic)) == 3
    for mode in ("overwrite", "ignore"):
        with pytest.raises(SparkOptionError, match='write with mode\\("append"\\), or without a mode'):
            rows.write.format("ottla").mode(mode)
    # Other formats keep Spark's default.
    rows.write.format("ottla").format("json").save(str(tmp_path / "rows"))
    with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
        rows.write.format("ottla").format("json").save(str(tmp_path / "rows"))


@pytest.mark.slow
def test_update_and_foreach_batch_write_to_topics(spark: Any, shared_broker: Broker, topic: str, tmp_path: Path) -> None:
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}
    shared_broker.create_topic(f"{topic}-each")
    spark.range(6).selectExpr("cast(id % 2 as string) as value").write.format("ottla").options(**where, topic=topic).save()
    stream = spark.readStream.format("ottla").options(**where, subscribe=topic, startingOffsets="earliest").load()
    counts = stream.groupBy("value").count().selectExpr("value as key", "cast(count as string) as value")
    sink = counts.writeStream.format("ottla").outputMode("update").options(**where, topic=f"{topic}-updates")
    shared_broker.create_topic(f"{topic}-updates")
    query = sink.option("checkpointLocation", str(tmp_path / "one")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    expected = [(b"0", b"3"), (b"1", b"3")]
    assert sorted((each.key, each.value) for each in shared_broker.records(f"{topic}-updates")) == expected
    shared_broker.create_topic(f"{topic}-complete")
    sink = counts.writeStream.format("ottla").outputMode("complete").options(**where, topic=f"{topic}-complete")
    query = sink.option("checkpointLocation", str(tmp_path / "all")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert sorted((each.key, each.value) for each in shared_broker.records(f"{topic}-complete")) == expected

    def write(batch: Any, number: int) -> None:
        batch.select("value").write.format("ottla").options(**where, topic=f"{topic}-each").save()

    each = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "two"))
    assert each.trigger(availableNow=True).start().awaitTermination(60)
    assert len(shared_broker.records(f"{topic}-each")) == 6


def test_update_is_not_exactly_once() -> None:
    with pytest.raises(SparkOptionError, match="at least once: leave out exactlyOnce"):
        update_batches({"exactlyOnce": True, "topic": "t"})


@pytest.mark.slow
def test_import_comes_before_or_after_pyspark() -> None:
    """The order of imports, and Spark Connect, make no difference."""
    program = """
import ottla.spark, sys
assert "pyspark" not in sys.modules
import pyspark.sql.connect.readwriter as connect, pyspark.sql.connect.streaming.readwriter as streams
from pyspark.sql.readwriter import DataFrameWriter
writers = DataFrameWriter, connect.DataFrameWriter, streams.DataStreamWriter
assert all("_ottla_modes" in vars(kind) for kind in writers)
writer = connect.DataFrameWriter(None, None)
assert writer.format("ottla")._write.mode == "append"
assert writer.mode("error")._write.mode == "append"
assert writer.format("json")._write.mode == "error"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


IN_A_WORKER = """
import gc, sys, types
main = sys.modules["__main__"]
main.__spec__ = types.SimpleNamespace(name="pyspark.daemon")
import ottla.spark
import ottla.spark.schema
gc.collect()
import ottla.spark.sink.writers
gc.collect()
print(len(gc.get_objects()), gc.get_freeze_count(), len(gc.callbacks))
"""


def test_objects_of_a_worker_are_frozen_after_its_first_collections() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_WORKER], capture_output=True, text=True, check=True)
    walked, frozen, callbacks = map(int, done.stdout.split())
    assert walked < 1000
    assert frozen > 10_000
    assert callbacks == 0


def test_the_collector_of_other_processes_is_left_alone() -> None:
    pyspark_patches.spare_loaded_objects()
    assert pyspark_patches._freeze_survivors not in gc.callbacks


def test_workers_of_spark_are_such_processes(spark: Any) -> None:
    def counts(batches: Any) -> Any:
        import gc

        import pyarrow

        import ottla.spark  # noqa: F401

        for batch in batches:
            yield pyarrow.record_batch({"frozen": [gc.get_freeze_count()] * batch.num_rows})

    # Each run uses the idle worker of the run before it. After the second one's collection the callback is gone.
    found = [spark.range(1, numPartitions=1).mapInArrow(counts, "frozen long").collect()[0].frozen for _ in range(4)]
    assert max(found) > 10_000, found
