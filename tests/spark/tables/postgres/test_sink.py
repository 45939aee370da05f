"""Staging and committing in a real server: appends, upserts, replays, leftovers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.support.servers.postgres_server import PostgresServer

from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.tables.postgres.connection import literal, quoted, quoted_table
from ottla.spark.tables.postgres.sink import Move, PostgresTarget, csv_of, listed, postgres_target, sql_type
from ottla.spark.tables.writers import BatchIdentity, TaskIdentity

COLUMNS = (("id", "bigint"), ("name", "string"))


def batch(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"id": number, "name": name} for number, name in rows], pa.schema([("id", pa.int64()), ("name", pa.string())])
    )


def write(target: PostgresTarget, number: int, tasks: Sequence[pa.RecordBatch], query: str = "q", attempt: str = "a") -> None:
    identity = BatchIdentity(query, number)
    written = [target.write_task(iter([each]), TaskIdentity(identity, n, attempt)) for n, each in enumerate(tasks)]
    target.commit([each for each in written if each is not None], identity, False)


def staging_tables(postgres: PostgresServer) -> list[Any]:
    return postgres.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'ottla_staging_%'")


def test_a_replayed_batch_is_not_stored_twice(postgres: PostgresServer) -> None:
    target = PostgresTarget(postgres.url, "appended", COLUMNS)
    target.prepare()
    first = [batch((1, "a"), (2, None)), batch((3, "")), batch()]
    write(target, 0, first)
    write(target, 0, first, attempt="b")
    write(target, 1, [batch((4, 'quoted "x", \\ and\nlines'))])
    write(target, 0, first, attempt="c")
    found = postgres.execute("SELECT id, name FROM appended ORDER BY id")
    assert found == [(1, "a"), (2, None), (3, ""), (4, 'quoted "x", \\ and\nlines')]
    write(target, 0, [batch((5, "other query"))], query="q2")
    assert postgres.execute("SELECT count(*) FROM appended") == [(5,)]
    assert staging_tables(postgres) == []


def test_what_a_killed_driver_left_behind_goes_with_the_next_commit(postgres: PostgresServer) -> None:
    target = PostgresTarget(postgres.url, "leftovers", COLUMNS)
    target.prepare()
    target.write_task(iter([batch((1, "lost"))]), TaskIdentity(BatchIdentity("q", 7), 0, "killed"))
    assert len(staging_tables(postgres)) == 1
    write(target, 7, [batch((1, "kept"))])
    assert postgres.execute("SELECT id, name FROM leftovers") == [(1, "kept")]
    assert staging_tables(postgres) == []


def test_the_last_row_of_a_key_wins(postgres: PostgresServer) -> None:
    target = PostgresTarget(postgres.url, "upserted", COLUMNS, keys=("id",))
    target.prepare()
    write(target, 0, [batch((1, "old"), (2, "b"), (1, "new"))])
    write(target, 1, [batch((2, "changed"), (3, "c"))])
    write(target, 1, [batch((2, "changed"), (3, "c"))], attempt="b")
    assert postgres.execute("SELECT id, name FROM upserted ORDER BY id") == [(1, "new"), (2, "changed"), (3, "c")]


def test_a_late_row_does_not_replace_a_newer_one(postgres: PostgresServer) -> None:
    columns = (("name", "string"), ("id", "bigint"))
    target = PostgresTarget(postgres.url, "public.ordered", columns, keys=("name",), order_by="id")
    target.prepare()

    def rows(*pairs: tuple[Any, ...]) -> pa.RecordBatch:
        return batch(*pairs).select(["name", "id"])

    write(target, 0, [rows((5, "a"), (4, "a"), (1, "b"))])
    write(target, 1, [rows((3, "a"), (2, "b"))])
    assert postgres.execute("SELECT name, id FROM ordered ORDER BY name") == [("a", 5), ("b", 2)]


def test_rows_are_deleted_by_a_flag_that_is_not_stored(postgres: PostgresServer) -> None:
    schema = pa.schema([("id", pa.int64()), ("gone", pa.bool_()), ("version", pa.int64())])
    columns = (("id", "bigint"), ("gone", "boolean"), ("version", "bigint"))
    target = PostgresTarget(postgres.url, "public.deleted_rows", columns, keys=("id",), order_by="version", deleted="gone")
    target.prepare()

    def rows(*found: tuple[int, bool | None, int]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([{"id": i, "gone": gone, "version": version} for i, gone, version in found], schema)

    write(target, 0, [rows((1, False, 1), (2, None, 1), (3, False, 5), (4, False, 1), (4, True, 2))])
    write(target, 1, [rows((1, True, 2), (2, False, 2), (3, True, 4), (9, True, 1))])
    assert postgres.execute("SELECT id, version FROM deleted_rows ORDER BY id") == [(2, 2), (3, 5)]


def test_an_overwrite_replaces_all_rows_and_a_discard_none(postgres: PostgresServer) -> None:
    target = PostgresTarget(postgres.url, "replaced", COLUMNS)
    target.prepare()
    write(target, 0, [batch((1, "a"))])
    identity = BatchIdentity("q", 1)
    staged = target.write_task(iter([batch((2, "b"))]), TaskIdentity(identity, 0, "a"))
    assert staged is not None
    target.discard([staged])
    assert postgres.execute("SELECT id FROM replaced") == [(1,)]
    staged = target.write_task(iter([batch((3, "c"))]), TaskIdentity(identity, 0, "b"))
    assert staged is not None
    target.commit([staged], identity, True)
    assert postgres.execute("SELECT id FROM replaced") == [(3,)]


def test_errors_say_what_does_not_fit(postgres: PostgresServer) -> None:
    postgres.execute("CREATE TABLE narrow (id bigint PRIMARY KEY, name varchar(3) CHECK (name <> 'no'))")
    target = PostgresTarget(postgres.url, "narrow", COLUMNS)
    target.prepare()
    with pytest.raises(SinkError, match=r"a row does not fit the table narrow: value too long .*line 2, column name"):
        write(target, 0, [batch((1, "abc"), (2, "abcd"))])
    with pytest.raises(SinkError, match="the batch does not fit the table narrow: duplicate key value"):
        write(target, 0, [batch((1, "a"), (1, "b"))])
    assert postgres.execute("SELECT count(*) FROM narrow") == [(0,)]
    with pytest.raises(SparkOptionError, match="the table narrow has no column more: it has id, name"):
        PostgresTarget(postgres.url, "narrow", (("more", "int"),)).prepare()
    with pytest.raises(SparkOptionError, match="the table narrow has no unique index on name, which keys needs: create one"):
        PostgresTarget(postgres.url, "narrow", COLUMNS, keys=("name",)).prepare()
    with pytest.raises(SparkOptionError, match="there is no table nowhere: create it, or leave createTable at true"):
        PostgresTarget(postgres.url, "nowhere", COLUMNS, is_created=False).prepare()
    with pytest.raises(SinkError, match="PostgreSQL cannot be reached with the option url"):
        PostgresTarget("postgresql://nobody@/x?host=/nonexistent", "t", COLUMNS).prepare()


def test_options_are_checked() -> None:
    schema = StructType.fromJson(
        {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    )
    good = {"url": "postgresql://localhost/x", "table": "t"}
    for options, sentence in [
        ({}, "the ottla_postgres sink needs the option url, such as postgresql://user@localhost/shop"),
        ({**good, "tabel": "x"}, "tabel is no option of the ottla_postgres sink; did you mean table?"),
        ({**good, "writeMode": "upsert"}, "writeMode=upsert and keys belong together"),
        ({**good, "writeMode": "merge"}, "writeMode is 'merge': it must be append or upsert"),
        ({**good, "writeMode": "upsert", "keys": "nr"}, "keys names nr, but the columns are id"),
        (
            {**good, "writeMode": "upsert", "keys": "id", "deleteColumn": "id"},
            "deleteColumn names id: it must be a boolean column",
        ),
        ({**good, "txnAppId": "x"}, "txnAppId and txnVersion belong together"),
    ]:
        with pytest.raises(SparkOptionError) as problem:
            postgres_target(options, schema)
        assert sentence in str(problem.value)
    target, identity = postgres_target({**good, "TXNAPPID": "x", "txnversion": "4"}, schema)
    assert (target.columns, identity) == ((("id", "bigint"),), ("x", 4))


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


def test_an_append_keeps_the_order_of_rows() -> None:
    assert listed(["a", 'b"']) == '"a", "b"""'
    assert Move("shop.t", ("a",)).statement(["s1", "s2"]) == (
        'INSERT INTO "shop"."t" ("a") SELECT "a" FROM (SELECT "a", 0 AS _ottla_task, _ottla_row FROM "s1" UNION ALL '
        'SELECT "a", 1 AS _ottla_task, _ottla_row FROM "s2") AS staged ORDER BY _ottla_task, _ottla_row'
    )


def test_a_table_of_keys_alone_has_nothing_to_update() -> None:
    assert Move("t", ("a",), keys=("a",)).statement(["s"]).endswith('ON CONFLICT ("a") DO NOTHING')


def test_with_an_order_only_newer_rows_replace() -> None:
    statement = Move("t", ("a", "n"), keys=("a",), order_by="n").statement(["s"])
    assert statement.endswith('SET "n" = EXCLUDED."n" WHERE "t"."n" IS NULL OR EXCLUDED."n" >= "t"."n"')
    assert 'ORDER BY "a", "n" DESC NULLS LAST, _ottla_task DESC, _ottla_row DESC' in statement


def test_names_and_texts_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'
    assert quoted_table("shop.orders") == '"shop"."orders"'
    assert literal("it's") == "'it''s'"
