"""Writing to a PostgreSQL table: tasks COPY into staging tables, the driver moves them into the table in one transaction.

1. A task creates an unlogged table of its own and copies its rows into it, as CSV that Arrow writes in bulk. Types that CSV
   has no form for go as text: binaries as hex, nested types as JSON.
2. The driver, in one transaction, checks and advances the query's row in `ottla_batches`, moves the staged rows, and drops the
   staging tables.

Each attempt of a task has a staging table of its own, so failed and speculative attempts never reach the target. A batch whose
number is in `ottla_batches` already only has its staging tables dropped. Staging tables that a killed driver left behind carry
the query's name and are dropped with the next commit of the query.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.tables.postgres.connection import connect, psycopg, quoted, quoted_table
from ottla.spark.tables.table_options import IDENTITY, TableOptions
from ottla.spark.tables.writers import BatchIdentity, TaskIdentity, identity_of_options

COPY_FORMAT = "FORMAT csv, NULL ''"
SQL_TYPES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
NESTED = ("struct<", "array<", "map<", "variant")


def sql_type(spark_type: str) -> str:
    """The PostgreSQL type of a column that is created for a Spark type, by its simple name."""
    if spark_type.startswith("decimal("):
        return spark_type.replace("decimal", "numeric")
    if spark_type.startswith(NESTED):
        return "jsonb"
    return SQL_TYPES.get(spark_type, "text")


def csv_of(batch: Any) -> Any:
    """The rows of a record batch as CSV without a header, for COPY FROM."""
    import pyarrow as pa
    import pyarrow.csv as csv

    columns = [_as_text(column) for column in batch.columns]
    written = pa.BufferOutputStream()
    table = pa.table(columns, names=batch.schema.names)
    csv.write_csv(table, written, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return written.getvalue()


def _as_text(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if each is None else "\\x" + each.hex() for each in column.to_pylist()], pa.string())
    if pa.types.is_nested(kind):
        return pa.array([None if each is None else _json(each, kind) for each in column.to_pylist()], pa.string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.string())
    return column


def _json(value: Any, kind: Any) -> str:
    return json.dumps(_plain(value, kind), ensure_ascii=False)


def _plain(value: Any, kind: Any) -> Any:
    """A value that JSON can hold; maps, which Arrow gives as pairs, become objects."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(_plain(name, kind.key_type)): _plain(each, kind.item_type) for name, each in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


ROW_NUMBER, TASK_NUMBER = "_ottla_row", "_ottla_task"


def listed(names: Sequence[str]) -> str:
    """Names of columns, as SQL."""
    return ", ".join(map(quoted, names))


@dataclass(frozen=True)
class Move:
    """How staged rows get into a table."""

    table: str
    names: tuple[str, ...]
    """The columns that are stored."""
    keys: tuple[str, ...] = ()
    """The columns that identify a row; empty for appends."""
    order_by: str | None = None
    deleted: str | None = None
    """A boolean column of the staged rows: those where it is true delete the row with their key."""

    def statement(self, staged: Sequence[str]) -> str:
        """One statement for all staging tables. Of several rows with the same key, the last counts."""
        into = f"INSERT INTO {quoted_table(self.table)} ({listed(self.names)})"
        rows = self._staged(staged)
        if not self.keys:
            return f"{into} SELECT {listed(self.names)} FROM {rows} ORDER BY {TASK_NUMBER}, {ROW_NUMBER}"
        keys = listed(self.keys)
        first = f"{quoted(self.order_by)} DESC NULLS LAST, " if self.order_by else ""
        chosen = (
            f"SELECT DISTINCT ON ({keys}) {listed(self._selected)} FROM {rows} "
            f"ORDER BY {keys}, {first}{TASK_NUMBER} DESC, {ROW_NUMBER} DESC"
        )
        if self.deleted is None:
            return f"{into} {chosen} {self._on_conflict()}"
        flag = f"chosen.{quoted(self.deleted)}"
        return (
            f"WITH chosen AS MATERIALIZED ({chosen}), gone AS (DELETE FROM {quoted_table(self.table)} AS target USING chosen "
            f"WHERE {flag} AND {self._same_key()}{self._if_newer('chosen', 'target', ' AND (', ')')}) "
            f"{into} SELECT {listed(self.names)} FROM chosen WHERE {flag} IS NOT TRUE {self._on_conflict()}"
        )

    @property
    def _selected(self) -> tuple[str, ...]:
        return self.names if self.deleted is None else (*self.names, self.deleted)

    def _staged(self, staged: Sequence[str]) -> str:
        names = listed(self._selected)
        parts = [
            f"SELECT {names}, {number} AS {TASK_NUMBER}, {ROW_NUMBER} FROM {quoted(name)}" for number, name in enumerate(staged)
        ]
        return f"({' UNION ALL '.join(parts)}) AS staged"

    def _on_conflict(self) -> str:
        changed = [f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in self.names if name not in self.keys]
        if not changed:
            return f"ON CONFLICT ({listed(self.keys)}) DO NOTHING"
        newer = self._if_newer("EXCLUDED", quoted_table(self.table), " WHERE ", "")
        return f"ON CONFLICT ({listed(self.keys)}) DO UPDATE SET {', '.join(changed)}{newer}"

    def _same_key(self) -> str:
        return " AND ".join(f"target.{quoted(key)} = chosen.{quoted(key)}" for key in self.keys)

    def _if_newer(self, new: str, old: str, before: str, after: str) -> str:
        """A late batch must not replace or delete a newer row."""
        if self.order_by is None:
            return ""
        column = quoted(self.order_by)
        return f"{before}{old}.{column} IS NULL OR {new}.{column} >= {old}.{column}{after}"


logger = logging.getLogger("ottla.spark.tables.postgres")

NAMES = ("url", "table", "writeMode", "keys", "orderBy", "deleteColumn", "createTable", *IDENTITY)
PROGRESS_TABLE = "ottla_batches"
STAGING_PREFIX = "ottla_staging_"


@dataclass(frozen=True)
class PostgresTarget:
    """A table, its columns, and how rows get into it."""

    url: str
    table: str
    columns: tuple[tuple[str, str], ...]
    """Names, and Spark's types by their simple names."""
    keys: tuple[str, ...] = ()
    """The columns that identify a row, for upserts; empty for appends."""
    order_by: str | None = None
    is_created: bool = True
    deleted: str | None = None
    """A boolean column that is not stored: where it is true, the row with the same key is deleted."""

    def prepare(self) -> None:
        """Create the target, if it is not there and may be, and the table of batches; check that the columns are there."""
        with connect(self.url) as connection:
            # Two queries may start at once, and CREATE TABLE IF NOT EXISTS alone can fail then.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('ottla_batches'))")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {PROGRESS_TABLE} (query_id text, target text, batch_id bigint NOT NULL, "
                "updated timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (query_id, target))"
            )
            if self.is_created:
                described = [f"{quoted(name)} {sql_type(kind)}" for name, kind in self._stored]
                if self.keys:
                    described.append(f"PRIMARY KEY ({listed(self.keys)})")
                connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted_table(self.table)} ({', '.join(described)})")
            try:
                there = {
                    column.name
                    for column in connection.execute(f"SELECT * FROM {quoted_table(self.table)} LIMIT 0").description
                }
            except psycopg().errors.UndefinedTable:
                raise SparkOptionError(f"there is no table {self.table}: create it, or leave createTable at true") from None
            missing = [name for name, _ in self._stored if name not in there]
            if missing:
                have = ", ".join(sorted(there))
                raise SparkOptionError(f"the table {self.table} has no column {', '.join(missing)}: it has {have}")
            if self.keys:
                self._check_keys(connection)

    def write_task(self, batches: Iterator[Any], task: TaskIdentity) -> str | None:
        """Copy the rows of a task into a staging table; its name."""
        name = f"{self._staging_prefix(task.batch)}{task.partition}_{task.attempt}"
        rows = 0
        with connect(self.url) as connection, connection.cursor() as cursor:
            # The columns have the target's own types, so a row that does not fit fails here, with its line.
            cursor.execute(
                f"CREATE UNLOGGED TABLE {quoted(name)} AS SELECT {listed(self.move.names)} "
                f"FROM {quoted_table(self.table)} WITH NO DATA"
            )
            if self.deleted:
                cursor.execute(f"ALTER TABLE {quoted(name)} ADD COLUMN {quoted(self.deleted)} boolean")
            cursor.execute(f"ALTER TABLE {quoted(name)} ADD COLUMN {ROW_NUMBER} bigserial")
            names = listed([column for column, _ in self.columns])
            try:
                with cursor.copy(f"COPY {quoted(name)} ({names}) FROM STDIN ({COPY_FORMAT})") as copy:
                    for batch in batches:
                        if batch.num_rows:
                            copy.write(memoryview(csv_of(batch)))
                            rows += batch.num_rows
            except psycopg().DataError as problem:
                detail = problem.diag.context or ""
                raise SinkError(
                    f"a row does not fit the table {self.table}: {problem.diag.message_primary}; {detail}"
                ) from None
            if not rows:
                connection.rollback()
        return name if rows else None

    def commit(self, written: list[str], batch: BatchIdentity | None, is_overwrite: bool) -> None:
        """Move the staged rows into the table, once for each batch."""
        try:
            with connect(self.url) as connection:
                if batch is not None and not self._advance(connection, batch):
                    logger.info("batch %d of query %s is in %s already", batch.batch_id, batch.query_id, self.table)
                else:
                    if is_overwrite:
                        connection.execute(f"DELETE FROM {quoted_table(self.table)}")
                    if written:
                        connection.execute(self.move.statement(written))
                self._drop(connection, written)
                self._drop(connection, self._left_behind(connection, batch))
        except psycopg().IntegrityError as problem:
            raise SinkError(f"the batch does not fit the table {self.table}: {str(problem).strip().splitlines()[0]}") from None

    def discard(self, written: list[str], may_be_committed: bool = False) -> None:
        """Drop the staging tables of a batch that is given up. A commit has moved their rows, or has not."""
        with connect(self.url) as connection:
            self._drop(connection, written)

    @property
    def move(self) -> Move:
        """How staged rows get into the table."""
        return Move(self.table, tuple(name for name, _ in self._stored), self.keys, self.order_by, self.deleted)

    @property
    def _stored(self) -> list[tuple[str, str]]:
        return [(name, kind) for name, kind in self.columns if name != self.deleted]

    def _check_keys(self, connection: Any) -> None:
        """ON CONFLICT needs a unique index on exactly these columns; EXPLAIN looks for one and changes nothing."""
        names, table = listed(self.move.names), quoted_table(self.table)
        try:
            connection.execute(
                f"EXPLAIN INSERT INTO {table} ({names}) SELECT {names} FROM {table} "
                f"ON CONFLICT ({listed(self.keys)}) DO NOTHING"
            )
        except psycopg().errors.InvalidColumnReference:
            raise SparkOptionError(
                f"the table {self.table} has no unique index on {', '.join(self.keys)}, which keys needs: create one"
            ) from None

    def _advance(self, connection: Any, batch: BatchIdentity) -> bool:
        """Record the batch; False if it, or a later one, was recorded before. The row stays locked until the commit."""
        statement = (
            f"INSERT INTO {PROGRESS_TABLE} AS known (query_id, target, batch_id) VALUES (%s, %s, %s) "
            "ON CONFLICT (query_id, target) DO UPDATE SET batch_id = EXCLUDED.batch_id, updated = now() "
            "WHERE known.batch_id < EXCLUDED.batch_id"
        )
        changed: int = connection.execute(statement, (batch.query_id, self.table, batch.batch_id)).rowcount
        return changed == 1

    def _staging_prefix(self, batch: BatchIdentity | None) -> str:
        """PostgreSQL's names have 63 bytes at most: the query and the table are in it as a hash."""
        if batch is None:
            return STAGING_PREFIX
        digest = hashlib.sha256(f"{batch.query_id}\0{self.table}".encode()).hexdigest()[:12]
        return f"{STAGING_PREFIX}{digest}_{batch.batch_id}_"

    def _left_behind(self, connection: Any, batch: BatchIdentity | None) -> list[str]:
        if batch is None:
            return []
        start = self._staging_prefix(batch).rsplit("_", 2)[0] + "_"
        found = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid) AND starts_with(relname, %s)",
            (start,),
        )
        return [name for (name,) in found if int(name[len(start) :].split("_")[0]) <= batch.batch_id]

    def _drop(self, connection: Any, names: Sequence[str]) -> None:
        if names:
            connection.execute(f"DROP TABLE IF EXISTS {listed(names)}")


def postgres_target(given: Any, schema: Any) -> tuple[PostgresTarget, BatchIdentity | None]:
    """The target that options and columns describe, or a `SparkOptionError`."""
    options = TableOptions(given, NAMES, "the ottla_postgres sink")
    url = options.needed("url", "postgresql://user@localhost/shop")
    table = options.needed("table", "public.orders")
    mode = options.choice("writeMode", ("append", "upsert"), "append")
    keys, order_by = options.names("keys"), options.get("orderBy")
    if (mode == "upsert") != bool(keys):
        raise SparkOptionError("writeMode=upsert and keys belong together: keys names the columns that identify a row")
    columns = tuple((field.name, field.dataType.simpleString()) for field in schema.fields)
    names = [name for name, _ in columns]
    deleted = options.get("deleteColumn")
    if deleted and (not keys or dict(columns).get(deleted) != "boolean"):
        raise SparkOptionError(f"deleteColumn names {deleted}: it must be a boolean column, and needs writeMode=upsert")
    for option, wanted in (("keys", keys), ("orderBy", (order_by,) if order_by else ())):
        missing = [name for name in wanted if name not in names]
        if missing:
            raise SparkOptionError(f"{option} names {', '.join(missing)}, but the columns are {', '.join(names)}")
    is_created = options.choice("createTable", ("true", "false"), "true") == "true"
    return PostgresTarget(url, table, columns, keys, order_by, is_created, deleted), identity_of_options(
        {name: value for name in IDENTITY if (value := options.get(name)) is not None}
    )
