"""Data files of one task."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.spark.tables.delta import write_files

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])


def batch(*rows: tuple[int, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "day": day} for number, day in rows], SCHEMA)


def test_files_are_cut_by_partition_and_described(tmp_path: Path) -> None:
    batches = iter([batch(), batch((1, "mon"), (2, None)), batch((3, "mon"), (4, "a/b"))])
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
    assert write_files(str(tmp_path / "t"), iter([batch()]), [], "l") == []
    assert not (tmp_path / "t").exists()
    (one,) = write_files(str(tmp_path / "t"), iter([batch((1, "x"))]), [], "l")
    assert (one.path, one.rows, one.partition) == ("part-l-0.parquet", 1, ())
