"""`format("ottla_postgres")` on real Spark: a stream in, a replay, upserts of counts, a stream out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.postgres_server import PostgresServer

from ottla.spark import each_batch


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    """Runs a stream with the checkpoint `name`; with `replays`, Spark writes the batch of that number again."""

    def run_stream(stream: Any, name: str, *, replays: int | None = None, mode: str = "append", **how: Any) -> None:
        checkpoint = tmp_path / name
        if replays is not None:
            (checkpoint / "commits" / str(replays)).unlink()
            (checkpoint / "commits" / f".{replays}.crc").unlink(missing_ok=True)
        writer = stream.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer = writer.foreachBatch(how["each"]) if "each" in how else writer.format("ottla_postgres").options(**how)
        assert writer.start().awaitTermination(120)

    return run_stream


@pytest.fixture
def rows(spark: Any, tmp_path: Path) -> Any:
    """A stream of three rows."""
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.json").write_text('{"id": 1, "city": "Praha"}\n{"id": 2, "city": "Brno"}\n{"id": 3, "city": "Praha"}\n')
    return spark.readStream.schema("id long, city string").json(str(source))


def test_a_stream_goes_into_a_table_once(rows: Any, run: Callable[..., None], postgres: PostgresServer) -> None:
    run(rows, "in-table", url=postgres.url, table="streamed")
    run(rows, "in-table", replays=0, url=postgres.url, table="streamed")
    assert postgres.execute("SELECT id, city FROM streamed ORDER BY id") == [(1, "Praha"), (2, "Brno"), (3, "Praha")]


@pytest.mark.slow
def test_counts_are_upserted_once(rows: Any, run: Callable[..., None], postgres: PostgresServer) -> None:
    upsert = each_batch("ottla_postgres", url=postgres.url, table="counts", writeMode="upsert", keys="city")
    counts = rows.groupBy("city").count()
    run(counts, "counts", mode="update", each=upsert)
    run(counts, "counts", replays=0, mode="update", each=upsert)
    assert postgres.execute("SELECT city, count FROM counts ORDER BY city") == [("Brno", 1), ("Praha", 2)]


def test_a_stream_comes_out_of_a_table(spark: Any, run: Callable[..., None], postgres: PostgresServer) -> None:
    postgres.execute("CREATE TABLE source AS SELECT * FROM (VALUES (1::bigint, 'Praha'), (2, 'Brno')) AS v (id, city)")
    out = spark.readStream.format("ottla_postgres").options(url=postgres.url, table="source", incrementalColumn="id").load()
    assert out.schema.simpleString() == "struct<id:bigint,city:string>"
    run(out, "out", url=postgres.url, table="copied")
    postgres.execute("INSERT INTO source VALUES (3, 'Ostrava')")
    run(out, "out", url=postgres.url, table="copied")
    assert postgres.execute("SELECT id FROM copied ORDER BY id") == [(1,), (2,), (3,)]
    snapshot = spark.read.format("ottla_postgres").options(url=postgres.url, query="SELECT count(*) AS n FROM copied").load()
    assert [row.n for row in snapshot.collect()] == [3]


def test_a_wrong_option_is_named(spark: Any, postgres: PostgresServer) -> None:
    with pytest.raises(Exception, match=r"tabel is no option of the ottla_postgres sink; did you mean table\?"):
        spark.range(1).write.format("ottla_postgres").mode("append").options(url=postgres.url, tabel="x").save()
