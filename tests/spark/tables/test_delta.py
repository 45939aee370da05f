"""Files and commits of Delta tables: replays, partitions, overwrites, refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla.spark.errors import SparkOptionError
from ottla.spark.tables.delta import DeltaTarget, delta_target, write_files
from ottla.spark.tables.writers import BatchIdentity, TableStreamWriter, TaskIdentity, TaskWritten

deltalake = pytest.importorskip("deltalake")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])


def batch(*rows: tuple[int, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "city": city, "at": number} for number, city in rows], SCHEMA)


def write(
    target: DeltaTarget, number: int, tasks: Sequence[pa.RecordBatch], attempt: str = "a", is_overwrite: bool = False
) -> None:
    identity = BatchIdentity("q", number)
    written = [target.write_task(iter([each]), TaskIdentity(identity, n, attempt)) for n, each in enumerate(tasks)]
    target.commit([each for each in written if each is not None], identity, is_overwrite)


def rows(path: Path) -> list[tuple[Any, ...]]:
    found = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["city"]) for row in found)


@pytest.mark.parametrize("partitions", [(), ("city",)])
def test_a_replayed_batch_is_not_stored_twice(tmp_path: Path, partitions: tuple[str, ...]) -> None:
    target = DeltaTarget(str(tmp_path / "t"), SCHEMA, partitions)
    target.prepare()
    first = [batch((1, "Praha"), (2, "a b/ü%=")), batch((3, "Praha")), batch()]
    write(target, 0, first)
    files = sorted((tmp_path / "t").rglob("*.parquet"))
    write(target, 0, first, "b")
    assert sorted((tmp_path / "t").rglob("*.parquet")) == files, "the files of the replay are removed"
    target.prepare()
    write(target, 1, [batch((4, "Brno"))])
    assert rows(tmp_path / "t") == [(1, "Praha"), (2, "a b/ü%="), (3, "Praha"), (4, "Brno")]
    assert deltalake.DeltaTable(tmp_path / "t").transaction_version("q") == 1


def test_null_partitions_overwrites_and_discards(tmp_path: Path) -> None:
    target = DeltaTarget(str(tmp_path / "t"), SCHEMA, ("city",))
    target.prepare()
    write(target, 0, [batch((1, "x"))])
    write(target, 1, [batch((2, "y"))], is_overwrite=True)
    assert rows(tmp_path / "t") == [(2, "y")]
    staged = target.write_task(iter([batch((3, "z"))]), TaskIdentity(None, 0, "c"))
    assert staged is not None
    target.discard([staged])
    target.commit(
        [written for written in [target.write_task(iter([batch((5, None))]), TaskIdentity(None, 0, "d"))] if written],
        None,
        False,
    )
    found = deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["city"]) for row in found if row["id"] != 5) == [(2, "y")]
    assert [row["city"] for row in found if row["id"] == 5] == [None]


def test_an_abort_after_the_commit_removes_no_file_of_the_table(tmp_path: Path) -> None:
    """Spark aborts if the process of `commit` dies, also after the commit. The replay finds the batch and writes nothing."""
    target, identity = DeltaTarget(str(tmp_path / "t"), SCHEMA), BatchIdentity("q", 0)
    target.prepare()
    messages = [TaskWritten(identity, target.write_task(iter([batch((1, "x"))]), TaskIdentity(identity, 0, "a")))]
    TableStreamWriter(target, None, False).commit(messages, 0)
    TableStreamWriter(target, None, False).abort(messages, 0)
    write(target, 0, [batch((1, "x"))], "b")
    assert rows(tmp_path / "t") == [(1, "x")]


def test_batch_that_another_run_commits_at_the_same_time_is_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both have seen that the table does not have it. The slower one failed its query, although all is there."""
    target, identity = DeltaTarget(str(tmp_path / "t"), SCHEMA), BatchIdentity("q", 0)
    target.prepare()
    late = target.write_task(iter([batch((1, "x"))]), TaskIdentity(identity, 0, "late"))
    look = deltalake.DeltaTable.transaction_version

    def look_and_be_overtaken(table: Any, query: str) -> Any:
        found = look(table, query)
        monkeypatch.undo()
        write(target, 0, [batch((1, "x"))], "fast")
        return found

    monkeypatch.setattr(deltalake.DeltaTable, "transaction_version", look_and_be_overtaken)
    assert late is not None
    target.commit([late], identity, False)
    assert rows(tmp_path / "t") == [(1, "x")]
    assert "its files are kept" in caplog.text


def test_columns_that_the_table_does_not_have_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    DeltaTarget(path, SCHEMA).prepare()
    with pytest.raises(SparkOptionError, match="has no column more: it has id, city, at"):
        DeltaTarget(path, pa.schema([("more", pa.int64())])).prepare()
    with pytest.raises(SparkOptionError, match=r"the column id of the Delta table .* is .*long.*, not .*string.*: cast it"):
        DeltaTarget(path, pa.schema([("id", pa.string())])).prepare()
    with pytest.raises(SparkOptionError, match="is partitioned by no column: say the same with partitionBy"):
        DeltaTarget(path, SCHEMA, ("city",)).prepare()


def test_binary_partitions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SparkOptionError, match="partitionBy names p, which is binary"):
        DeltaTarget(str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("p", pa.binary())]), ("p",)).prepare()
    assert not (tmp_path / "t").exists()


def test_options_are_checked() -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("id", LongType())])
    with pytest.raises(SparkOptionError, match="the ottla_delta sink needs the option path, such as data/orders"):
        delta_target({}, schema)
    with pytest.raises(SparkOptionError, match="partitionBy names day, but the columns are id"):
        delta_target({"path": "x", "partitionBy": "day"}, schema)
    target, _ = delta_target({"path": "x", "storage.Region": "eu"}, schema)
    assert target.storage == {"Region": "eu"}


def test_a_batch_that_spark_replays_is_stored_once(stream_with_replay: Callable[..., None], tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    stream_with_replay("ottla_delta", {"path": str(tmp_path / "table"), "partitionBy": "city"})
    rows = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["city"]) for row in rows) == [(1, "c1"), (2, "c0"), (3, "c1"), (4, "c0")]
    assert {row["at"] for row in rows} == {datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}


PARQUET_FILES_SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])


def batch_parquet_files(*rows: tuple[int, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "day": day} for number, day in rows], PARQUET_FILES_SCHEMA)


def test_files_are_cut_by_partition_and_described(tmp_path: Path) -> None:
    batches = iter(
        [batch_parquet_files(), batch_parquet_files((1, "mon"), (2, None)), batch_parquet_files((3, "mon"), (4, "a/b"))]
    )
    found = write_files(str(tmp_path), batches, ["day"], "0-1-x")
    assert {(each.partition, each.rows) for each in found} == {
        ((("day", "mon"),), 2),
        ((("day", None),), 1),
        ((("day", "a/b"),), 1),
    }
    for each in found:
        assert (tmp_path / each.path).stat().st_size == each.size_bytes
        assert pq.ParquetFile(tmp_path / each.path).schema_arrow.names == ["id"]


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    assert write_files(str(tmp_path / "t"), iter([batch_parquet_files()]), [], "l") == []
    assert not (tmp_path / "t").exists()
    (one,) = write_files(str(tmp_path / "t"), iter([batch_parquet_files((1, "x"))]), [], "l")
    assert (one.path, one.rows, one.partition) == ("part-l-0.parquet", 1, ())
