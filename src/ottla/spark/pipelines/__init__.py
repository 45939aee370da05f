"""Pipelines: folders of `pyspark.pipelines` files and a small YAML, run on a session of Spark.

`spec.py` reads the YAML, `resolution.py` loads the files into a `graph.py`, `resolution.py` turns flows into DataFrames and
`run.py` runs them. Nothing here imports PySpark before a function that needs it is called.
"""

from ottla.spark.pipelines.connections import declare_connections
from ottla.spark.pipelines.expectations import (
    expect,
    expect_all,
    expect_all_or_dead_letter,
    expect_all_or_drop,
    expect_all_or_fail,
    expect_or_dead_letter,
    expect_or_drop,
    expect_or_fail,
)

__all__ = [
    "declare_connections",
    "expect",
    "expect_all",
    "expect_all_or_dead_letter",
    "expect_all_or_drop",
    "expect_all_or_fail",
    "expect_or_dead_letter",
    "expect_or_drop",
    "expect_or_fail",
]
