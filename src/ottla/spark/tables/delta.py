"""`format("ottla_delta")`: Delta tables as sinks, with the package deltalake and no jar.

Tasks write Parquet files, the driver adds them to the table's log in one commit. The commit carries Delta's own transaction
action (`txn`: application id = query id, version = batch id), as Spark's Delta sink does: a batch whose version the table has
already is not added again, and its files are removed."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pyspark.sql.datasource import DataSource

from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.tables.table_options import IDENTITY, TableOptions
from ottla.spark.tables.writers import BatchIdentity, TableBatchWriter, TableStreamWriter, TaskIdentity, identity_of_options

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
PARTITIONS_MAX = 10_000
ROWS_PER_GROUP_MAX = 1_000_000


@dataclass(frozen=True)
class WrittenFile:
    """One data file."""

    path: str
    """Relative to the table's folder."""
    size_bytes: int
    rows: int
    partition: tuple[tuple[str, str | None], ...]
    """The values of the partition columns, as text."""


def write_files(
    folder: str, batches: Iterator[Any], partition_columns: Sequence[str], label: str, filesystem: Any = None
) -> list[WrittenFile]:
    """Write the record batches below a folder, one file for each partition; nothing if there are no rows.

    `label` makes the names of the files unique among all tasks and attempts.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return []

    def all_batches() -> Iterator[Any]:
        yield first
        yield from batches

    found: list[WrittenFile] = []
    root = folder.rstrip("/") + "/"

    def visit(written: Any) -> None:
        relative = written.path[written.path.index(root) + len(root) :]
        found.append(WrittenFile(relative, written.size, written.metadata.num_rows, _partition_of(relative)))

    partitioning = None
    if partition_columns:
        partitioning = ds.partitioning(pa.schema([first.schema.field(name) for name in partition_columns]), flavor="hive")
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(first.schema, all_batches()),
        folder,
        format="parquet",
        filesystem=filesystem,
        partitioning=partitioning,
        basename_template=f"part-{label}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_partitions=PARTITIONS_MAX,
        max_rows_per_group=ROWS_PER_GROUP_MAX,
        file_visitor=visit,
        use_threads=False,
    )
    return found


def _partition_of(relative: str) -> tuple[tuple[str, str | None], ...]:
    values: list[tuple[str, str | None]] = []
    for part in relative.split("/")[:-1]:
        name, _, value = part.partition("=")
        values.append((unquote(name), None if value == NULL_PARTITION else unquote(value)))
    return tuple(values)


logger = logging.getLogger("ottla.spark.tables.delta")

STORAGE_PREFIX = "storage."
NAMES = ("path", "partitionBy", *IDENTITY)


def deltalake() -> Any:
    """The package, or one sentence that says how to get it."""
    try:
        import deltalake as found
    except ImportError:
        raise SparkOptionError("Delta tables need the package deltalake: pip install 'ottla[delta]'") from None
    return found


@dataclass(frozen=True)
class DeltaTarget:
    """A table's folder and its columns."""

    path: str
    schema: Any
    """The columns as an Arrow schema."""
    partition_columns: tuple[str, ...] = ()
    storage: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Create the table if it is not there; check that it has the columns of the DataFrame."""
        package = deltalake()
        for name in self.partition_columns:
            if "binary" in str(self.schema.field(name).type):
                raise SparkOptionError(
                    f"partitionBy names {name}, which is binary: values of partitions are text, and bytes would be changed; "
                    "cast it to string"
                )
        table = package.DeltaTable.create(
            self.path,
            schema=self.schema,
            mode="ignore",
            partition_by=list(self.partition_columns) or None,
            storage_options=dict(self.storage) or None,
        )
        there = {each.name: str(each.type) for each in table.schema().fields}
        wanted = {each.name: str(each.type) for each in package.Schema.from_arrow(self.schema).fields}
        for name, kind in wanted.items():
            if name not in there:
                raise SparkOptionError(f"the Delta table {self.path} has no column {name}: it has {', '.join(there)}")
            if there[name] != kind:
                raise SparkOptionError(
                    f"the column {name} of the Delta table {self.path} is {there[name]}, not {kind}: cast it"
                )
        partitions = tuple(table.metadata().partition_columns)
        if partitions != self.partition_columns:
            shown = ", ".join(partitions) or "no column"
            raise SparkOptionError(f"the Delta table {self.path} is partitioned by {shown}: say the same with partitionBy")

    def write_task(self, batches: Iterator[Any], task: TaskIdentity) -> list[WrittenFile] | None:
        """Write the files of a task."""
        number = "0" if task.batch is None else task.batch.batch_id
        filesystem, folder = self._filesystem()
        label = f"{number}-{task.partition}-{task.attempt}"
        return write_files(folder, batches, self.partition_columns, label, filesystem) or None

    def commit(self, written: list[list[WrittenFile]], batch: BatchIdentity | None, is_overwrite: bool) -> None:
        """Add the files of all tasks in one commit, once for each batch."""
        package = deltalake()
        table = self._table()
        transactions = []
        if batch is not None:
            if _has_batch(table, batch):
                logger.info("batch %d of query %s is in %s already", batch.batch_id, batch.query_id, self.path)
                self.discard(written)
                return
            transactions = [package.Transaction(app_id=batch.query_id, version=batch.batch_id)]
        now_ms = int(time.time() * 1000)
        try:
            table.create_write_transaction(
                [self._action(each, now_ms) for files in written for each in files],
                mode="overwrite" if is_overwrite else "append",
                schema=table.schema(),
                partition_by=list(self.partition_columns) or None,
                commit_properties=package.CommitProperties(app_transactions=transactions),
            )
        except package.exceptions.CommitFailedError as problem:
            if batch is None or not _has_batch(self._table(), batch):
                raise SinkError(f"the Delta table {self.path} did not take the commit, try again: {problem}") from None
            # Another run of the query was faster, such as a process that outlived its driver. Or this commit was stored.
            self.discard(written, may_be_committed=True)

    def _table(self) -> Any:
        return deltalake().DeltaTable(self.path, storage_options=dict(self.storage) or None)

    def discard(self, written: list[list[WrittenFile]], may_be_committed: bool = False) -> None:
        """Remove the files of a batch that is given up. Those that may be in the table stay; a vacuum finds the unused ones."""
        if may_be_committed:
            logger.warning("%s: a commit failed, and its files are kept: they may be in the table, else vacuum it", self.path)
            return
        filesystem, folder = self._filesystem()
        for files in written:
            for each in files:
                filesystem.delete_file(f"{folder}/{each.path}")

    def _action(self, file: WrittenFile, now_ms: int) -> Any:
        from deltalake.transaction import AddAction

        return AddAction(
            path=file.path,  # deltalake encodes it for the log
            size=file.size_bytes,
            partition_values=dict(file.partition),
            modification_time=now_ms,
            data_change=True,
            stats=json.dumps({"numRecords": file.rows}),
        )

    def _filesystem(self) -> tuple[Any, str]:
        from pyarrow import fs

        if "://" in self.path:
            filesystem, folder = fs.FileSystem.from_uri(self.path)
            return filesystem, folder.rstrip("/")
        return fs.LocalFileSystem(), self.path.rstrip("/")


def _has_batch(table: Any, batch: BatchIdentity) -> bool:
    """Whether the table has the batch, or a later one of the query."""
    last = table.transaction_version(batch.query_id)
    return last is not None and last >= batch.batch_id


def delta_target(given: Mapping[str, str], schema: Any) -> tuple[DeltaTarget, BatchIdentity | None]:
    """The target that options and columns describe, or a `SparkOptionError`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    options = TableOptions(given, NAMES, "the ottla_delta sink", [STORAGE_PREFIX])
    path = options.needed("path", "data/orders")
    partitions = options.names("partitionBy")
    missing = [name for name in partitions if name not in schema.names]
    if missing:
        raise SparkOptionError(f"partitionBy names {', '.join(missing)}, but the columns are {', '.join(schema.names)}")
    target = DeltaTarget(path, to_arrow_schema(schema, timezone="UTC"), partitions, options.with_prefix(STORAGE_PREFIX))
    return target, identity_of_options({name: value for name in IDENTITY if (value := options.get(name)) is not None})


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
