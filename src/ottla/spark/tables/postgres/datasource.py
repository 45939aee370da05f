"""`format("ottla_postgres")`: PostgreSQL tables in Spark, read and written, batch and streaming."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource

from ottla.spark.tables.postgres.sink import postgres_target
from ottla.spark.tables.postgres.source import PostgresReader, PostgresStreamReader, ddl, described, postgres_source
from ottla.spark.tables.writers import TableBatchWriter, TableStreamWriter


class PostgresDataSource(DataSource):
    """A PostgreSQL table."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(…)`."""
        return "ottla_postgres"

    def schema(self) -> Any:
        """The columns of the table or query."""
        return ddl(described(postgres_source(self.options, is_streaming=False)))

    def reader(self, schema: Any) -> Any:
        """Reads a snapshot."""
        return PostgresReader(postgres_source(self.options, is_streaming=False), schema)

    def streamReader(self, schema: Any) -> Any:
        """Reads the rows above the last position, batch by batch."""
        return PostgresStreamReader(postgres_source(self.options, is_streaming=True), schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Writes a DataFrame in one transaction."""
        target, given = postgres_target(self.options, schema)
        target.prepare()
        return TableBatchWriter(target, given, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Writes each batch of a stream in one transaction, once."""
        target, given = postgres_target(self.options, schema)
        target.prepare()
        return TableStreamWriter(target, given, overwrite)
