"""Arrow columns as COPY's CSV, and types of created columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from tests.support.servers.postgres_server import PostgresServer

from ottla.spark.tables.postgres.sink import csv_of, sql_type


def test_sql_types() -> None:
    assert [sql_type(each) for each in ("bigint", "decimal(10,2)", "struct<a:int>", "timestamp", "interval")] == [
        "bigint",
        "numeric(10,2)",
        "jsonb",
        "timestamptz",
        "text",
    ]


def test_every_kind_of_value_survives_the_way_into_a_table(postgres: PostgresServer) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    columns = {
        "i": (pa.int64(), "bigint", -5),
        "f": (pa.float64(), "double precision", 1.5),
        "b": (pa.bool_(), "boolean", True),
        "t": (pa.string(), "text", 'a "quoted", text\n\\.\n'),
        "e": (pa.string(), "text", ""),
        "y": (pa.binary(), "bytea", b"\x00\xff\\"),
        "d": (pa.date32(), "date", date(2026, 1, 2)),
        "z": (pa.timestamp("us", tz="UTC"), "timestamptz", at),
        "n": (pa.timestamp("us"), "timestamp", at.replace(tzinfo=None)),
        "m": (pa.decimal128(20, 3), "numeric(20,3)", Decimal("12345678.125")),
        "s": (pa.struct([("x", pa.list_(pa.int32()))]), "jsonb", {"x": [1, None]}),
        "p": (pa.map_(pa.string(), pa.decimal128(5, 2)), "jsonb", {"k": "1.50"}),
    }
    values = {name: value for name, (_, _, value) in columns.items()} | {"p": [("k", Decimal("1.50"))]}
    schema = pa.schema([(name, kind) for name, (kind, _, _) in columns.items()])
    batch = pa.RecordBatch.from_pylist([values, dict.fromkeys(columns)], schema)
    described = ", ".join(f"{name} {kind}" for name, (_, kind, _) in columns.items())
    postgres.execute(f"CREATE TABLE kinds ({described})")
    import psycopg

    with psycopg.connect(postgres.url, options="-c timezone=UTC") as connection:
        with connection.cursor().copy("COPY kinds FROM STDIN (FORMAT csv, NULL '')") as copy:
            copy.write(memoryview(csv_of(batch)))
        first, second = connection.execute("SELECT * FROM kinds").fetchall()
    assert dict(zip(columns, first, strict=True)) == {name: value for name, (_, _, value) in columns.items()}
    assert second == (None,) * len(columns)
