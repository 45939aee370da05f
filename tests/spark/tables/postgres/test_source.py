"""Snapshots and streams of tables, driven as Spark does it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import IntegerType, LongType, StructField, StructType
from tests.support.servers.postgres_server import PostgresServer

from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.tables.postgres import source
from ottla.spark.tables.postgres import source as source_module
from ottla.spark.tables.postgres.source import (
    PostgresReader,
    PostgresSource,
    PostgresStreamReader,
    ddl,
    describe,
    described,
    postgres_source,
    read_rows,
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


def test_every_kind_of_value_is_read(postgres: PostgresServer) -> None:
    postgres.execute(
        "CREATE TABLE read_kinds AS "
        "SELECT 1::int2 AS s, 2 AS i, 3::int8 AS l, 1.5::float4 AS f, true AS b, 'a \"b\",\n\\.' AS t, '' AS e, "
        "'\\x00ff'::bytea AS y, date '1969-12-31' AS d, timestamptz '2026-01-02 03:04:05.678901+01' AS z, "
        "timestamp '2026-01-02 03:04:05.5' AS n, 12.345::numeric(20,3) AS m, 1.5::numeric AS w, '{\"a\": 1}'::jsonb AS j, "
        "'0f8fad5b-d9cb-469f-a165-70867728950e'::uuid AS u"
    )
    postgres.execute("INSERT INTO read_kinds (s) VALUES (NULL)")
    query = "SELECT * FROM read_kinds"
    columns = describe(postgres.url, query)
    assert {each.name: each.spark for each in columns} == {
        "s": "smallint", "i": "int", "l": "bigint", "f": "float", "b": "boolean", "t": "string", "e": "string", "y": "binary",
        "d": "date", "z": "timestamp", "n": "timestamp_ntz", "m": "decimal(20,3)", "w": "decimal(38,18)", "j": "string",
        "u": "string",
    }  # fmt: skip
    first, second = pa.Table.from_batches(read_rows(postgres.url, query, columns)).to_pylist()
    assert first == {
        "s": 1,
        "i": 2,
        "l": 3,
        "f": 1.5,
        "b": True,
        "t": 'a "b",\n\\.',
        "e": "",
        "y": b"\x00\xff",
        "d": date(1969, 12, 31),
        "z": datetime(2026, 1, 2, 2, 4, 5, 678901, UTC),
        "n": datetime(2026, 1, 2, 3, 4, 5, 500000),
        "m": Decimal("12.345"),
        "w": Decimal("1.5"),
        "j": '{"a": 1}',
        "u": "0f8fad5b-d9cb-469f-a165-70867728950e",
    }
    assert second == dict.fromkeys(first)


def test_large_results_come_in_several_batches(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CHUNK_BYTES", 1000)
    query = "SELECT n, 'row ' || n AS t FROM generate_series(1, 1000) AS n"
    batches = list(read_rows(postgres.url, query, describe(postgres.url, query), "n > 10"))
    assert len(batches) > 5
    assert [row["t"] for batch in batches for row in batch.to_pylist()] == [f"row {n}" for n in range(11, 1001)]


def test_a_null_in_the_only_column_is_a_row(postgres: PostgresServer) -> None:
    query = "SELECT nullif(n, 2) AS n FROM generate_series(1, 3) AS n"
    found = pa.Table.from_batches(read_rows(postgres.url, query, describe(postgres.url, query)))
    assert found.column("n").to_pylist() == [1, None, 3]


def test_a_row_of_some_megabytes_is_read(postgres: PostgresServer) -> None:
    query = "SELECT repeat('x', 3000000) AS t UNION ALL SELECT 'short'"
    found = pa.Table.from_batches(read_rows(postgres.url, query, describe(postgres.url, query)))
    assert sorted(len(text) for text in found.column("t").to_pylist()) == [5, 3_000_000]


def numbers(postgres: PostgresServer, query: str) -> tuple[str, list[Decimal | None]]:
    (column,) = describe(postgres.url, query)
    return column.spark, pa.Table.from_batches(read_rows(postgres.url, query, [column])).column(0).to_pylist()


def test_numbers_with_more_digits_than_spark_has_are_rounded_or_refused(postgres: PostgresServer) -> None:
    third, large = "0.333333333333333333", "12345678901234567890.5"
    query = f"SELECT * FROM (VALUES (1/3::numeric), ({large}), (NULL)) AS given (n)"
    assert numbers(postgres, query) == ("decimal(38,18)", [Decimal(third), Decimal(large), None])
    with pytest.raises(
        SourceError, match=r"one of the numeric columns n has a value that Spark's type .* numeric field overflow"
    ):
        numbers(postgres, "SELECT 1e25::numeric AS n")  # was read as 122083294381374201810.411…


def test_scales_that_spark_does_not_have_are_read(postgres: PostgresServer) -> None:
    assert numbers(postgres, "SELECT 98765::numeric(3,-2) AS n") == ("decimal(5,0)", [Decimal("98800")])
    assert numbers(postgres, "SELECT 0.00123::numeric(3,5) AS n") == ("decimal(5,5)", [Decimal("0.00123")])


def test_infinite_dates_are_the_last_and_first_as_in_spark(postgres: PostgresServer) -> None:
    query = (
        "SELECT v::date AS d, v::timestamp AS n, v::timestamptz AS z "
        "FROM (VALUES ('infinity'), ('-infinity'), ('2026-01-02'), (NULL)) AS given (v)"
    )
    found = pa.Table.from_batches(read_rows(postgres.url, query, describe(postgres.url, query)))
    last = datetime(9999, 12, 31, 23, 59, 59, 999000)
    assert found.column("d").to_pylist() == [date(9999, 12, 31), date(1, 1, 1), date(2026, 1, 2), None]
    assert found.column("n").to_pylist() == [last, datetime(1, 1, 1), datetime(2026, 1, 2), None]
    assert found.column("z").to_pylist() == [
        None if each is None else each.replace(tzinfo=UTC) for each in found.column("n").to_pylist()
    ]


def test_numbers_that_no_decimal_holds_are_named(postgres: PostgresServer) -> None:
    query = "SELECT 1 AS i, 'NaN'::numeric AS n"
    with pytest.raises(
        SourceError, match=r"column n has a value that decimal\(38,18\) does not have: .*'NaN'.*; use the option query"
    ):
        list(read_rows(postgres.url, query, describe(postgres.url, query)))
    with pytest.raises(SourceError, match=r"one of the numeric columns n has .*infinite value.*; use the option query"):
        numbers(postgres, "SELECT 'Infinity'::numeric AS n")
    query = "SELECT timestamp '294276-12-31' AS n"
    with pytest.raises(SourceError, match="a column has a value that Spark's type does not have: bigint out of range"):
        list(read_rows(postgres.url, query, describe(postgres.url, query)))
