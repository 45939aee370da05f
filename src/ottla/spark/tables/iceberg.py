"""`format("ottla_iceberg")`: Iceberg tables as sinks, of any catalog that pyiceberg knows, without a jar.

Tasks write Parquet files, the driver commits them to the catalog as one snapshot. The transaction that adds the files also sets
the table property `ottla.batch.QUERY` to the batch's number. A batch whose number the table has already is not added again, and
its files are removed. Snapshots carry query and batch in their summary too, for people to read; they expire, so the property
decides.

Executors need no access to the catalog: the driver passes them the table's metadata and its FileIO. pyiceberg has no public
call that writes files without committing them, so private functions of it are used in `write_task`, `_commit_once` and
`_check_before_retries`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql.datasource import DataSource

from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.tables.table_options import IDENTITY, TableOptions
from ottla.spark.tables.writers import BatchIdentity, TableBatchWriter, TableStreamWriter, TaskIdentity, identity_of_options

logger = logging.getLogger("ottla.spark.tables.iceberg")

CATALOG_PREFIX = "catalog."
NAMES = ("table", "catalog", "partitionBy", *IDENTITY)
BATCH_PROPERTY = "ottla.batch."
COMMIT_ATTEMPTS_MAX = 8
PIECE_BYTES = 256 << 20


def load_catalog(name: str, properties: Mapping[str, str]) -> Any:
    """A catalog, or one sentence that says what is missing."""
    try:
        from pyiceberg.catalog import load_catalog as load
    except ImportError:
        raise SparkOptionError("Iceberg tables need the package pyiceberg: pip install 'ottla[iceberg]'") from None
    try:
        return load(name, **properties)
    except (ValueError, ImportError) as problem:  # NotInstalledError is an ImportError in some versions
        raise SparkOptionError(
            f"the Iceberg catalog {name} cannot be opened: {problem}; give its properties as catalog.*"
        ) from None


@dataclass(frozen=True)
class IcebergTarget:
    """A table of a catalog, and the columns of the DataFrame."""

    table: str
    schema: Any
    """The columns as an Arrow schema."""
    catalog: str = "default"
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    metadata: Any = None
    """The table's metadata and FileIO, for the executors; set by `prepared`."""
    io: Any = None

    def prepared(self) -> IcebergTarget:
        """Create the table if it is not there, check its columns, and take along what executors need."""
        catalog = load_catalog(self.catalog, self.properties)
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

        try:
            table = catalog.load_table(self.table)
        except NoSuchTableError:
            namespace = self.table.rpartition(".")[0]
            if namespace:
                catalog.create_namespace_if_not_exists(namespace)
            try:
                table = self._created(catalog)
            except TableAlreadyExistsError:  # another query was faster
                table = catalog.load_table(self.table)
        there = [each.name for each in table.schema().fields]
        missing = [name for name in self.schema.names if name not in there]
        if missing:
            raise SparkOptionError(
                f"the Iceberg table {self.table} has no column {', '.join(missing)}: it has {', '.join(there)}"
            )
        return replace(self, metadata=table.metadata, io=table.io)

    def write_task(self, batches: Iterator[Any], task: TaskIdentity) -> list[Any] | None:
        """Write the files of a task; their descriptions, with statistics and partitions."""
        from pyiceberg.io.pyarrow import _check_pyarrow_schema_compatible, _dataframe_to_data_files

        files: list[Any] = []
        for rows in self._tables(batches):
            try:
                _check_pyarrow_schema_compatible(
                    self.metadata.schema(), provided_schema=rows.schema, format_version=self.metadata.format_version
                )
            except ValueError as problem:
                raise SinkError(f"the columns do not fit the Iceberg table {self.table}: {problem}") from None
            files += _dataframe_to_data_files(self.metadata, rows, self.io, uuid.uuid4())
        return files or None

    def commit(self, written: list[list[Any]], batch: BatchIdentity | None, is_overwrite: bool) -> None:
        """Add the files of all tasks in one snapshot, once for each batch."""
        from pyiceberg.exceptions import CommitFailedException

        catalog = load_catalog(self.catalog, self.properties)
        for attempt in range(COMMIT_ATTEMPTS_MAX):
            table = catalog.load_table(self.table)
            if batch is not None and _has_batch(table, batch):
                logger.info("batch %d of query %s is in %s already", batch.batch_id, batch.query_id, self.table)
                # After a failed attempt it can be that attempt which is in the table: its answer was lost.
                self.discard(written, may_be_committed=attempt > 0)
                return
            try:
                self._commit_once(table, written, batch, is_overwrite)
                return
            except (CommitFailedException, _StoredMeanwhile) as problem:
                # Another writer was faster. The files are there: only the commit is done again, on the new state.
                logger.info("commit %d to %s is tried again: %s", attempt + 1, self.table, problem)
        raise SinkError(f"the Iceberg table {self.table} was changed by others during {COMMIT_ATTEMPTS_MAX} attempts to commit")

    def discard(self, written: list[list[Any]], may_be_committed: bool = False) -> None:
        """Remove the files of a batch that is given up. Those that may be in the table stay."""
        if may_be_committed:
            logger.warning(
                "%s: a commit failed, and its files are kept: they may be in the table, else they are orphan files", self.table
            )
            return
        for files in written:
            for each in files:
                self.io.delete(each.file_path)

    def _commit_once(self, table: Any, written: list[list[Any]], batch: BatchIdentity | None, is_overwrite: bool) -> None:
        from pyiceberg.expressions import AlwaysTrue

        summary = {} if batch is None else {"ottla.query-id": batch.query_id, "ottla.batch-id": str(batch.batch_id)}
        with table.transaction() as transaction:
            if batch is not None:
                _check_before_retries(transaction, batch)
            if is_overwrite and table.current_snapshot() is not None:
                transaction.delete(AlwaysTrue(), snapshot_properties=summary)
            if written:
                with transaction._append_snapshot_producer(summary) as append:
                    for files in written:
                        for each in files:
                            append.append_data_file(each)
            if batch is not None:
                transaction.set_properties({BATCH_PROPERTY + batch.query_id: str(batch.batch_id)})

    def _tables(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The rows in pieces that fit into memory: pyiceberg cuts whole tables by partition."""
        import pyarrow as pa

        waiting: list[Any] = []
        size_bytes = 0
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
                size_bytes += batch.nbytes
            if size_bytes >= PIECE_BYTES:
                yield pa.Table.from_batches(waiting, self.schema)
                waiting, size_bytes = [], 0
        if waiting:
            yield pa.Table.from_batches(waiting, self.schema)

    def _created(self, catalog: Any) -> Any:
        table = catalog.create_table(self.table, schema=self.schema)
        if self.partition_columns:
            with table.update_spec() as update:
                for name in self.partition_columns:
                    update.add_identity(name)
        return table


class _StoredMeanwhile(Exception):
    """Another run of the query has committed the batch."""


def _has_batch(table: Any, batch: BatchIdentity) -> bool:
    """Whether the table has the batch, or a later one of the query."""
    return int(table.properties.get(BATCH_PROPERTY + batch.query_id, -1)) >= batch.batch_id


def _check_before_retries(transaction: Any, batch: BatchIdentity) -> None:
    """Raise `_StoredMeanwhile` where pyiceberg would commit on top of the same batch.

    From 0.12 on it repeats a commit by itself if others have changed the table. They can be another run of the query.
    """
    rebuild = transaction._rebuild_snapshot_updates

    def checked() -> None:
        if _has_batch(transaction._table, batch):  # pyiceberg has loaded it again
            raise _StoredMeanwhile(f"batch {batch.batch_id} of query {batch.query_id} is there")
        rebuild()

    transaction._rebuild_snapshot_updates = checked


def iceberg_target(given: Mapping[str, str], schema: Any) -> tuple[IcebergTarget, BatchIdentity | None]:
    """The target that options and columns describe, or a `SparkOptionError`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    options = TableOptions(given, NAMES, "the ottla_iceberg sink", [CATALOG_PREFIX])
    table = options.needed("table", "shop.orders")
    partitions = options.names("partitionBy")
    missing = [name for name in partitions if name not in schema.names]
    if missing:
        raise SparkOptionError(f"partitionBy names {', '.join(missing)}, but the columns are {', '.join(schema.names)}")
    target = IcebergTarget(
        table,
        to_arrow_schema(schema, timezone="UTC"),
        options.get("catalog") or "default",
        options.with_prefix(CATALOG_PREFIX),
        partitions,
    )
    return target, identity_of_options({name: value for name in IDENTITY if (value := options.get(name)) is not None})


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
