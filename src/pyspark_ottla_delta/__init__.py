"""Makes `format("ottla_delta")` known to Spark, which looks for `DefaultSource` in modules named `pyspark_*`."""

from ottla.spark.tables.delta import DeltaDataSource as DefaultSource

__all__ = ["DefaultSource"]
