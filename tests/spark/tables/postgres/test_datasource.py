"""`format("ottla_postgres")` on real Spark: a stream in, a replay, upserts of counts, a stream out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.postgres_server import PostgresServer

from ottla.spark import each_batch


def test_a_stream_goes_into_a_table_and_out_again(spark: Any, postgres: PostgresServer, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()

    def run(stream: Any, name: str, *, replays: int | None = None, mode: str = "append", **how: Any) -> None:
        checkpoint = tmp_path / name
        if replays is not None:
            (checkpoint / "commits" / str(replays)).unlink()
            (checkpoint / "commits" / f".{replays}.crc").unlink(missing_ok=True)
        writer = stream.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer = writer.foreachBatch(how["each"]) if "each" in how else writer.format("ottla_postgres").options(**how)
        assert writer.start().awaitTermination(120)

    rows = spark.readStream.schema("id long, city string").json(str(source))
    (source / "1.json").write_text('{"id": 1, "city": "Praha"}\n{"id": 2, "city": "Brno"}\n{"id": 3, "city": "Praha"}\n')
    run(rows, "in-table", url=postgres.url, table="streamed")
    run(rows, "in-table", replays=0, url=postgres.url, table="streamed")
    assert postgres.execute("SELECT id, city FROM streamed ORDER BY id") == [(1, "Praha"), (2, "Brno"), (3, "Praha")]

    upsert = each_batch("ottla_postgres", url=postgres.url, table="counts", writeMode="upsert", keys="city")
    counts = rows.groupBy("city").count()
    run(counts, "counts", mode="update", each=upsert)
    run(counts, "counts", replays=0, mode="update", each=upsert)
    assert postgres.execute("SELECT city, count FROM counts ORDER BY city") == [("Brno", 1), ("Praha", 2)]

    out = spark.readStream.format("ottla_postgres").options(url=postgres.url, table="streamed", incrementalColumn="id").load()
    assert out.schema.simpleString() == "struct<id:bigint,city:string>"
    run(out, "out", url=postgres.url, table="copied")
    postgres.execute("INSERT INTO streamed VALUES (4, 'Ostrava')")
    run(out, "out", url=postgres.url, table="copied")
    assert postgres.execute("SELECT id FROM copied ORDER BY id") == [(1,), (2,), (3,), (4,)]
    snapshot = spark.read.format("ottla_postgres").options(url=postgres.url, query="SELECT count(*) AS n FROM copied").load()
    assert [row.n for row in snapshot.collect()] == [4]


def test_a_wrong_option_is_named(spark: Any, postgres: PostgresServer) -> None:
    with pytest.raises(Exception, match=r"tabel is no option of the ottla_postgres sink; did you mean table\?"):
        spark.range(1).write.format("ottla_postgres").mode("append").options(url=postgres.url, tabel="x").save()
