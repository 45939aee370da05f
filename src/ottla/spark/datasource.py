"""`OttlaDataSource`: what `spark.read.format("ottla")` and `df.write.format("ottla")` are, batch and streaming.

Spark pickles the instance to its workers, so it holds nothing but the options. Options are checked when a reader or writer is
made, in the driver, before any task starts.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource

from ottla.spark.errors import SinkError, SparkOptionError, plain_errors
from ottla.spark.schema import source_schema
from ottla.spark.sink.options import sink_options
from ottla.spark.source.options import check_source_options, source_options


class OttlaDataSource(DataSource):
    """Topics as DataFrames. Options, columns and offsets are those of Spark's own Kafka source and sink."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(…)`."""
        return "ottla"

    def schema(self) -> Any:
        """The columns of Spark's own Kafka source, with headers if `includeHeaders` is true. Called by `load()`.

        With value.format or key.format, values or keys have the columns of their schema.
        """
        with plain_errors():
            options = check_source_options(self.options)
            if options.registry.sides:
                from ottla.spark.registry.reading import decoded_schema

                return decoded_schema(options.registry, options.named_topics, options.has_headers)
        return source_schema(str(self.options.get("includeHeaders", "false")).lower() == "true")

    def reader(self, schema: Any) -> Any:
        """Reads topics once, between two sets of offsets."""
        from ottla.spark.source.readers import BatchReader

        with plain_errors():
            return BatchReader(source_options(self.options, is_streaming=False), schema)

    def streamReader(self, schema: Any) -> Any:
        """Reads topics from an offset on, batch by batch."""
        from ottla.spark.source.readers import RefusedStream, StreamReader

        try:
            return StreamReader(source_options(self.options, is_streaming=True), schema)
        except SparkOptionError as error:
            # PySpark loses an error that is raised here, and reports an UnboundLocalError of its own.
            return RefusedStream(str(error))

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Writes a DataFrame to topics."""
        from ottla.spark.sink.writers import BatchWriter

        with plain_errors(SinkError):
            return BatchWriter(sink_options(self.options, is_streaming=False), schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Writes a stream to topics."""
        from ottla.spark.sink.writers import StreamWriter

        with plain_errors(SinkError):
            return StreamWriter(sink_options(self.options, is_streaming=True), schema)
