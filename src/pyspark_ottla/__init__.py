"""Makes `format("ottla")` known to Spark, which looks for a `DefaultSource` in every top-level module named `pyspark_*`."""

from ottla.spark.datasource import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
