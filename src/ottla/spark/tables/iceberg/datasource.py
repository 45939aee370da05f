"""`format("ottla_iceberg")`: streams and DataFrames into Iceberg tables of any catalog that pyiceberg knows."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource

from ottla.spark.tables.iceberg.sink import iceberg_target
from ottla.spark.tables.writing import TableBatchWriter, TableStreamWriter


class IcebergDataSource(DataSource):
    """An Iceberg table."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(…)`."""
        return "ottla_iceberg"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Writes a DataFrame in one snapshot."""
        target, given = iceberg_target(self.options, schema)
        return TableBatchWriter(target.prepared(), given, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Writes each batch of a stream in one snapshot, once."""
        target, given = iceberg_target(self.options, schema)
        return TableStreamWriter(target.prepared(), given, overwrite)
