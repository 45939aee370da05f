"""Makes `format("ottla_iceberg")` known to Spark, which looks for `DefaultSource` in modules named `pyspark_*`."""

from ottla.spark.tables.iceberg import IcebergDataSource as DefaultSource

__all__ = ["DefaultSource"]
