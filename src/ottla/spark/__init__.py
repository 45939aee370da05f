"""Spark through PySpark: the data source and sink `format("ottla")`, on the Python clients. `pip install ottla[spark]`.

    from ottla.spark import decode, ProgressListener

The names are loaded when they are first used. The import makes PySpark's writers take the modes that Spark's own Kafka sink
takes (`pyspark_patches.py`). Loop and thread rule: everything here is synchronous. Planning runs in Python processes of the
driver, reading and writing in Python workers of the executors; each process keeps the clients it has opened (`clients.py`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.spark import pyspark_patches
from ottla.spark.pyspark_patches import spare_loaded_objects

if TYPE_CHECKING:
    from ottla.spark.dead_letters import to_topics
    from ottla.spark.decoding.decode import decode, split_errors
    from ottla.spark.progress.listener import ProgressListener
    from ottla.spark.progress.measures import offsets_behind_latest
    from ottla.spark.tables.each_batch import each_batch

__all__ = ["ProgressListener", "decode", "each_batch", "offsets_behind_latest", "split_errors", "to_topics"]

_HOMES = {
    "ProgressListener": "ottla.spark.progress.listener",
    "decode": "ottla.spark.decoding.decode",
    "each_batch": "ottla.spark.tables.each_batch",
    "offsets_behind_latest": "ottla.spark.progress.measures",
    "split_errors": "ottla.spark.decoding.decode",
    "to_topics": "ottla.spark.dead_letters",
}

spare_loaded_objects()
pyspark_patches.install()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ottla.spark' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
