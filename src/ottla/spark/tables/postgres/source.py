"""PostgreSQL tables as sources: a snapshot, and a stream of the rows above a position in a column that rises.

The stream's position is the largest value read so far; Spark keeps it in the query's checkpoint. A row can become visible after
one with a larger value, if its transaction took longer. So a value is used as the end of a batch only when every writing
transaction that was running when it was first seen has ended. No row is skipped, as long as values are drawn in the order of
time when rows are inserted (serial and identity columns, clock timestamps).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.tables.postgres.connecting import connect, literal, quoted, quoted_table
from ottla.spark.tables.postgres.reading import Column, describe, read_rows
from ottla.spark.tables.table_options import TableOptions

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
    from ottla.spark.tables.postgres.connecting import psycopg

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
