"""What the collector leaves out in processes that Spark's daemon forks."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

from ottla.spark import pyspark_patches

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
