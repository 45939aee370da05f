"""PostgreSQL tables as sources: a snapshot, and a stream of the rows above a position in a column that rises.

The stream's position is the largest value read so far; Spark keeps it in the query's checkpoint. A row can become visible after
one with a larger value, if its transaction took longer. So a value is used as the end of a batch only when every writing
transaction that was running when it was first seen has ended. No row is skipped, as long as values are drawn in the order of
time when rows are inserted (serial and identity columns, clock timestamps).

Rows come as COPY's CSV, which Arrow reads in bulk. COPY writes null as an empty field and an empty text in quotes. Dates and
timestamps come as numbers since 1970, binaries as hex. Infinite dates and timestamps become the last and the first ones of the
years 1 to 9999, as in Spark's JDBC source. A decimal has neither infinity nor NaN: reading one fails, and the error names the
column.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.tables.postgres.connection import connect, literal, psycopg, quoted, quoted_table
from ottla.spark.tables.table_options import TableOptions

CHUNK_BYTES = 4 << 20
DAYS = (
    "(CASE {0} WHEN 'infinity' THEN date '9999-12-31' WHEN '-infinity' THEN date '0001-01-01' ELSE {0} END - date '1970-01-01')"
)
MICROS = (
    "(extract(epoch from CASE {{0}} WHEN 'infinity' THEN {0} '9999-12-31 23:59:59.999' WHEN '-infinity' THEN {0} '0001-01-01' "
    "ELSE {{0}} END) * 1000000)::bigint"
)


class Column(NamedTuple):
    """One column of a query."""

    name: str
    spark: str
    """Spark's type, as DDL."""
    expression: str
    """What COPY selects for it, with `{}` or `{0}` for the column."""
    read: str
    """Arrow's type of the CSV field, by pyarrow's name for it."""


KINDS: dict[str, tuple[str, str, str]] = {
    "int2": ("smallint", "{}", "int16"),
    "int4": ("int", "{}", "int32"),
    "int8": ("bigint", "{}", "int64"),
    "oid": ("bigint", "{}", "int64"),
    "float4": ("float", "{}", "float32"),
    "float8": ("double", "{}", "float64"),
    "bool": ("boolean", "{}", "bool_"),
    "date": ("date", DAYS, "int32"),
    "timestamp": ("timestamp_ntz", MICROS.format("timestamp"), "int64"),
    "timestamptz": ("timestamp", MICROS.format("timestamptz"), "int64"),
    "bytea": ("binary", "encode({}, 'hex')", "string"),
}
"""Spark's type, the expression and Arrow's type, by PostgreSQL's name. Everything else is read as text."""


def describe(url: str, query: str) -> list[Column]:
    """The columns of a query."""
    with connect(url) as connection:
        found = connection.execute(f"SELECT * FROM ({query}) AS described LIMIT 0").description
        return [_column(each.name, _type_name(connection, each.type_code), each.precision, each.scale) for each in found]


def read_rows(url: str, query: str, columns: Sequence[Column], condition: str = "") -> Iterator[Any]:
    """The rows of a query as record batches with the types that Spark expects."""
    import pyarrow as pa
    import pyarrow.csv as csv

    selected = ", ".join(each.expression.format(quoted(each.name)) for each in columns) or "1"
    where = f" WHERE {condition}" if condition else ""
    statement = f"COPY (SELECT {selected} FROM ({query}) AS wanted{where}) TO STDOUT (FORMAT csv, NULL '')"
    options = csv.ConvertOptions(
        column_types={each.name: _read_type(each) for each in columns},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["t"],
        false_values=["f"],
    )
    # An empty line is a row too: a null in the only column.
    parsing = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    for chunk in _chunks(url, statement, columns):
        # One block: Arrow refuses a row that is larger than its block.
        names = [each.name for each in columns]
        reading = csv.ReadOptions(column_names=names, use_threads=False, block_size=len(chunk) + 1)
        with _explained(columns):
            table = csv.read_csv(pa.BufferReader(chunk), read_options=reading, parse_options=parsing, convert_options=options)
        arrays = [_finished(table.column(each.name), each) for each in columns]
        made = pa.table(arrays, names=[each.name for each in columns])
        yield from made.combine_chunks().to_batches()


@contextmanager
def _explained(columns: Sequence[Column]) -> Iterator[None]:
    """Errors about a value, of PostgreSQL or Arrow, as one sentence that names the column and says what to do."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as problem:
        where = re.search(r"In CSV column #(\d+): (?:Row #\d+: )?(.+)", str(problem))
        if where is None:
            raise
        column = columns[int(where[1])]
        raise SourceError(
            f"column {column.name} has a value that {column.spark} does not have: {where[2]}; {_REMEDY}"
        ) from None
    except psycopg().DataError as problem:
        why = problem.diag.message_primary or str(problem).strip().splitlines()[0]
        detail = f" ({problem.diag.message_detail})" if problem.diag.message_detail else ""
        numbers = ", ".join(each.name for each in columns if each.read == "decimal")
        at = f"one of the numeric columns {numbers}" if numbers and "numeric" in why else "a column"
        raise SourceError(f"{at} has a value that Spark's type does not have: {why}{detail}; {_REMEDY}") from None


_REMEDY = "use the option query and select something else for it, such as nullif(column, 'NaN') or column::float8"


def _chunks(url: str, statement: str, columns: Sequence[Column]) -> Iterator[bytes]:
    """Whole rows, some megabytes at a time: COPY hands them over row by row."""
    rows: list[bytes] = []
    size = 0
    with _explained(columns), connect(url) as connection, connection.cursor().copy(statement) as copy:
        for row in copy:
            rows.append(bytes(row))
            size += len(rows[-1])
            if size >= CHUNK_BYTES:
                yield b"".join(rows)
                rows, size = [], 0
    if rows:
        yield b"".join(rows)


def _type_name(connection: Any, oid: int) -> str:
    found = connection.execute("SELECT typname FROM pg_type WHERE oid = %s", (oid,)).fetchone()
    return str(found[0])


def _column(name: str, kind: str, precision: int | None, scale: int | None) -> Column:
    if kind == "numeric":
        digits, after = _decimal_size(precision, scale or 0)
        # PostgreSQL rounds, and refuses what is too large. Arrow refuses what it would have to round, and wraps around.
        return Column(name, f"decimal({digits},{after})", f"{{}}::numeric({digits},{after})", "decimal")
    spark, expression, read = KINDS.get(kind, ("string", "{}::text", "string"))
    return Column(name, spark, expression, read)


def _decimal_size(precision: int | None, scale: int) -> tuple[int, int]:
    """Digits, and how many of them come after the point, as Spark allows them: as in Spark's JDBC source, 38 and 18 else."""
    if not precision:
        return 38, 18
    # PostgreSQL has numbers whose last digits are zeros (scale < 0), and such with zeros after the point (scale > precision).
    digits = max(precision, scale) if scale >= 0 else precision - scale
    return (digits, max(scale, 0)) if digits <= 38 else (38, 18)


def _read_type(column: Column) -> Any:
    import pyarrow as pa

    return _decimal_type(column) if column.read == "decimal" else getattr(pa, column.read)()


def _decimal_type(column: Column) -> Any:
    import pyarrow as pa

    digits, after = column.spark[len("decimal(") : -1].split(",")
    return pa.decimal128(int(digits), int(after))


def _finished(array: Any, column: Column) -> Any:
    import pyarrow as pa

    if column.spark == "date":
        return array.cast(pa.date32())
    if column.spark in ("timestamp", "timestamp_ntz"):
        return array.cast(pa.timestamp("us", tz="UTC" if column.spark == "timestamp" else None))
    if column.spark == "binary":
        return pa.chunked_array([[None if each is None else bytes.fromhex(each) for each in array.to_pylist()]], pa.binary())
    return array


NAMES = ("url", "table", "query", "incrementalColumn", "startingPosition", "maxRowsPerTrigger")
RUNNING = (
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted "
    "AND (pid IS NULL OR pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())) "
    "UNION SELECT virtualtransaction FROM pg_locks JOIN pg_class ON pg_class.oid = relation "
    "WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted AND relkind IN ('r', 'p', 'S') "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Transactions of this database that have written something, or may be about to. Every role may see them.

The first half has those with a transaction id, prepared ones included. The second has those that have drawn a value and written
nothing yet: INSERT and nextval lock the table or the sequence first. Indexes are left out: VACUUM locks them while it runs.
"""
ENDLESS = ("infinity", "Infinity", "NaN")
"""Values that are larger than all others of their type: a stream would never read another row."""
SETTLE_TIMEOUT_S = 30
SETTLE_PAUSE_S = 0.1
Position = dict[str, str | None]


@dataclass(frozen=True)
class PostgresSource:
    """What to read."""

    url: str
    query: str
    rising: str | None = None
    starting: str | None = None
    rows_per_trigger_max: int | None = None


def postgres_source(given: Mapping[str, str], *, is_streaming: bool) -> PostgresSource:
    """What options describe, or a `SparkOptionError`."""
    options = TableOptions(given, NAMES, "the ottla_postgres source")
    url = options.needed("url", "postgresql://user@localhost/shop")
    table, query = options.get("table"), options.get("query")
    if bool(table) == bool(query):
        raise SparkOptionError("the ottla_postgres source needs one of table and query, to say what to read")
    rising = options.get("incrementalColumn")
    if is_streaming and not rising:
        raise SparkOptionError(
            "a stream of a table needs incrementalColumn: a column that is larger in every new row, such as id"
        )
    selected = query.strip().rstrip(";") if query else f"SELECT * FROM {quoted_table(str(table))}"
    return PostgresSource(url, selected, rising, options.get("startingPosition"), options.whole_number("maxRowsPerTrigger"))


def described(source: PostgresSource) -> list[Column]:
    """The columns, or one sentence that says why there are none."""
    try:
        return describe(source.url, source.query)
    except psycopg().ProgrammingError as problem:
        raise SourceError(
            f"PostgreSQL refuses to read: {str(problem).strip().splitlines()[0]}; the query is {source.query}"
        ) from None


def ddl(columns: Sequence[Column]) -> str:
    """The schema, as Spark reads it."""
    return ", ".join(f"`{each.name}` {each.spark}" for each in columns)


def chosen(columns: Sequence[Column], schema: Any) -> list[Column]:
    """The columns that Spark asks for, in its order."""
    by_name = {each.name: each for each in columns}
    unknown = [name for name in schema.names if name not in by_name]
    if unknown:
        raise SparkOptionError(f"the query has no column {', '.join(unknown)}: it has {', '.join(by_name)}")
    return [by_name[name] for name in schema.names]


@dataclass
class RowRange(InputPartition):
    """The rows of one task: those above `after`, up to `until`."""

    condition: str


class PostgresReader(DataSourceReader):
    """Reads a snapshot, in one task and one statement: it is consistent."""

    def __init__(self, source: PostgresSource, schema: Any) -> None:
        self._source = source
        self._columns = chosen(described(source), schema)

    def partitions(self) -> Sequence[RowRange]:
        """One task."""
        return [RowRange("")]

    def read(self, partition: RowRange) -> Iterator[Any]:
        """All rows."""
        return read_rows(self._source.url, self._source.query, self._columns, partition.condition)


class PostgresStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the rows above the last position, batch by batch."""

    def __init__(self, source: PostgresSource, schema: Any) -> None:
        columns = described(source)
        if source.rising not in {each.name for each in columns}:
            raise SparkOptionError(
                f"incrementalColumn is {source.rising}, which is not among {', '.join(c.name for c in columns)}"
            )
        self._source = source
        self._columns = chosen(columns, schema)
        self._rising = quoted(str(source.rising))
        self._is_ordered_by_value = not any(each.name == source.rising and each.spark == "string" for each in columns)
        self._candidate: tuple[str, frozenset[str]] | None = None
        """A position that was seen, and the transactions that were writing then."""
        self._last: Position | None = None
        """Where trigger(availableNow=True) ends."""

    def initialOffset(self) -> Position:
        """Before the first row, or at `startingPosition`."""
        return {"position": self._source.starting}

    def getDefaultReadLimit(self) -> Any:
        """`maxRowsPerTrigger`, if it was given."""
        rows = self._source.rows_per_trigger_max
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the query: what is visible now, once the transactions that run now have ended."""
        largest, awaited = self._largest()
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while awaited:
            if time.monotonic() > deadline:
                raise SourceError(
                    f"a transaction has been writing to PostgreSQL for more than {SETTLE_TIMEOUT_S} s, and rows that it adds "
                    f"could be missed: run again when it has ended (see pg_stat_activity)"
                )
            time.sleep(SETTLE_PAUSE_S)
            awaited &= self._largest()[1]
        self._last = {"position": largest}

    def latestOffset(self, start: Position, limit: Any) -> Position:
        """Where the next batch ends."""
        end = self._last or {"position": self._safe_end(start["position"])}
        if end["position"] is None:
            return start
        if isinstance(limit, ReadMaxRows):
            return {"position": self._limited(start["position"], end["position"], limit.max_rows)}
        return end

    def reportLatestOffset(self) -> Position:
        """The largest value there is."""
        return {"position": self._largest()[0]}

    def partitions(self, start: Position, end: Position) -> Sequence[RowRange]:
        """One task for all rows of the batch."""
        if end["position"] is None:
            return []
        return [RowRange(self._condition(start["position"], end["position"]))]

    def read(self, partition: RowRange) -> Iterator[Any]:
        """The rows of a batch."""
        return read_rows(self._source.url, self._source.query, self._columns, partition.condition)

    def _condition(self, after: str | None, until: str | None) -> str:
        parts = [] if after is None else [f"{self._rising} > {literal(after)}"]
        if until is not None:
            parts.append(f"{self._rising} <= {literal(until)}")
        return " AND ".join(parts)

    def _largest(self) -> tuple[str | None, frozenset[str]]:
        """The largest visible value, and the transactions that are writing.

        The list is made after the snapshot in which the value was found: a transaction that is in neither has ended by the time
        that the batch's rows are selected, which happens later.
        """
        statement = f"SELECT max({self._rising})::text, ARRAY({RUNNING}) FROM ({self._source.query}) AS wanted"
        with connect(self._source.url) as connection:
            largest, running = connection.execute(statement).fetchone()
        if largest in ENDLESS and self._is_ordered_by_value:
            raise SourceError(
                f"the column {self._source.rising} has the value {largest}, and no new row can be larger: leave such rows out "
                "with the option query, or choose another incrementalColumn"
            )
        return largest, frozenset(running)

    def _safe_end(self, start: str | None) -> str | None:
        largest, running = self._largest()
        if largest is None or not running:
            self._candidate = None
            return largest or start
        if self._candidate is None:
            self._candidate = (largest, running)
        found, awaited = self._candidate
        if awaited & running:
            return start
        self._candidate = (largest, running)
        return found

    def _limited(self, after: str | None, until: str, rows: int) -> str:
        """The value of the last of so many rows. All rows with that value are read, so that none is skipped."""
        statement = (
            f"SELECT max(value)::text FROM (SELECT {self._rising} AS value FROM ({self._source.query}) AS wanted "
            f"WHERE {self._condition(after, until)} ORDER BY 1 LIMIT {rows}) AS first_rows"
        )
        with connect(self._source.url) as connection:
            (found,) = connection.execute(statement).fetchone()
        return found or until
