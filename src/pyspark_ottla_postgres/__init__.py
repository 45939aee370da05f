"""Makes `format("ottla_postgres")` known to Spark, which looks for `DefaultSource` in modules named `pyspark_*`."""

from ottla.spark.tables.postgres.datasource import PostgresDataSource as DefaultSource

__all__ = ["DefaultSource"]
