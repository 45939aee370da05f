"""`format("ottla_delta")`: streams and DataFrames into Delta tables."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource

from ottla.spark.tables.delta.sink import delta_target
from ottla.spark.tables.writing import TableBatchWriter, TableStreamWriter


class DeltaDataSource(DataSource):
    """A Delta table."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(…)`."""
        return "ottla_delta"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Writes a DataFrame in one commit."""
        target, given = delta_target(self.options, schema)
        target.prepare()
        return TableBatchWriter(target, given, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Writes each batch of a stream in one commit, once."""
        target, given = delta_target(self.options, schema)
        target.prepare()
        return TableStreamWriter(target, given, overwrite)
