"""Snapshots and streams of tables, driven as Spark does it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import IntegerType, LongType, StructField, StructType
from tests.support.servers.postgres_server import PostgresServer

from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.tables.postgres import source as source_module
from ottla.spark.tables.postgres.source import (
    PostgresReader,
    PostgresSource,
    PostgresStreamReader,
    ddl,
    described,
    postgres_source,
)

SCHEMA = StructType([StructField("id", LongType())])


def stream_of(postgres: PostgresServer, table: str) -> PostgresStreamReader:
    postgres.execute(f"CREATE TABLE {table} (id bigserial PRIMARY KEY, note text)")
    options = {"url": postgres.url, "table": table, "incrementalColumn": "id"}
    return PostgresStreamReader(postgres_source(options, is_streaming=True), SCHEMA)


def ids(reader: Any, start: Any, end: Any) -> list[int]:
    return [row["id"] for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]


def test_a_snapshot_has_the_columns_that_spark_asks_for(postgres: PostgresServer) -> None:
    postgres.execute("CREATE TABLE snapshots AS SELECT n AS id, 'x' AS note FROM generate_series(1, 3) AS n")
    found = postgres_source({"url": postgres.url, "table": "snapshots"}, is_streaming=False)
    assert ddl(described(found)) == "`id` int, `note` string"
    reader = PostgresReader(found, StructType([StructField("id", IntegerType())]))
    (part,) = reader.partitions()
    assert [batch.to_pydict() for batch in reader.read(part)] == [{"id": [1, 2, 3]}]


def test_a_stream_continues_after_its_position(postgres: PostgresServer) -> None:
    reader = stream_of(postgres, "followed")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    postgres.execute("INSERT INTO followed (note) SELECT 'x' FROM generate_series(1, 5)")
    end = reader.latestOffset(start, ReadMaxRows(2))
    assert ids(reader, start, end) == [1, 2]
    last = reader.latestOffset(end, ReadAllAvailable())
    assert ids(reader, end, last) == [3, 4, 5]
    assert reader.latestOffset(last, ReadAllAvailable()) == last == reader.reportLatestOffset()


@pytest.mark.parametrize(("kind", "value"), [("timestamptz", "infinity"), ("float8", "NaN"), ("numeric", "Infinity")])
def test_value_that_no_new_row_can_exceed_is_told(postgres: PostgresServer, kind: str, value: str) -> None:
    """The stream took it as its position, and read nothing more."""
    query = f"SELECT 1::bigint AS id, '{value}'::{kind} AS at"
    options = {"url": postgres.url, "query": query, "incrementalColumn": "at"}
    reader = PostgresStreamReader(postgres_source(options, is_streaming=True), SCHEMA)
    with pytest.raises(SourceError, match=f"the column at has the value {value}, and no new row can be larger"):
        reader.latestOffset(reader.initialOffset(), ReadAllAvailable())


def test_rows_of_a_slower_transaction_are_not_skipped(postgres: PostgresServer) -> None:
    reader = stream_of(postgres, "slow")
    start = reader.initialOffset()
    with psycopg.connect(postgres.url) as slow:
        slow.execute("INSERT INTO slow (note) VALUES ('takes its time')")
        postgres.execute("INSERT INTO slow (note) VALUES ('is quick')")
        assert reader.latestOffset(start, ReadAllAvailable()) == start, "2 is visible, 1 is still to come"
        slow.commit()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ids(reader, start, end) == [1, 2]


def test_a_value_that_is_drawn_and_not_yet_inserted_is_waited_for(postgres: PostgresServer) -> None:
    reader = stream_of(postgres, "drawn")
    postgres.execute("INSERT INTO drawn (note) VALUES ('first')")
    with psycopg.connect(postgres.url) as slow:
        slow.execute("SELECT nextval('drawn_id_seq')")  # writes nothing, so the transaction has no id yet
        postgres.execute("INSERT INTO drawn (note) VALUES ('third')")
        start = reader.initialOffset()
        assert reader.latestOffset(start, ReadAllAvailable()) == start, "3 is visible, 2 is still to come"
        slow.execute("INSERT INTO drawn VALUES (2, 'second')")
        slow.commit()
    assert sorted(ids(reader, start, reader.latestOffset(start, ReadAllAvailable()))) == [1, 2, 3]


def test_a_stream_moves_on_while_others_write_all_the_time(postgres: PostgresServer) -> None:
    reader = stream_of(postgres, "busy")
    start = reader.initialOffset()
    with psycopg.connect(postgres.url) as first, psycopg.connect(postgres.url) as second:
        first.execute("INSERT INTO busy (note) VALUES ('first')")
        postgres.execute("INSERT INTO busy (note) VALUES ('done')")
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        second.execute("INSERT INTO busy (note) VALUES ('second')")
        first.commit()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert ids(reader, start, end) == [1, 2]


def test_available_now_waits_for_running_transactions(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "SETTLE_TIMEOUT_S", 0.2)
    reader = stream_of(postgres, "available")
    with psycopg.connect(postgres.url) as slow:
        slow.execute("INSERT INTO available (note) VALUES ('x')")
        with pytest.raises(SourceError, match="a transaction has been writing to PostgreSQL for more than"):
            reader.prepareForTriggerAvailableNow()
        slow.commit()
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    postgres.execute("INSERT INTO available (note) VALUES ('later')")
    assert ids(reader, start, reader.latestOffset(start, ReadAllAvailable())) == [1]


def test_mistakes_are_told(postgres: PostgresServer) -> None:
    for options, sentence in [
        ({"url": "x"}, "needs one of table and query"),
        ({"url": "x", "table": "t"}, "a stream of a table needs incrementalColumn"),
    ]:
        with pytest.raises(SparkOptionError, match=sentence):
            postgres_source(options, is_streaming=True)
    with pytest.raises(SourceError, match='PostgreSQL refuses to read: relation "nowhere" does not exist'):
        described(PostgresSource(postgres.url, "SELECT * FROM nowhere"))
    with pytest.raises(SparkOptionError, match="incrementalColumn is nr, which is not among id"):
        PostgresStreamReader(PostgresSource(postgres.url, "SELECT 1 AS id", "nr"), SCHEMA)
    with pytest.raises(SparkOptionError, match="the query has no column id: it has x"):
        PostgresReader(PostgresSource(postgres.url, "SELECT 1 AS x"), SCHEMA)
