"""Files and snapshots of Iceberg tables: replays, partitions, overwrites, writers at the same time."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.tables.iceberg import IcebergTarget, iceberg_target, load_catalog
from ottla.spark.tables.writers import BatchIdentity, TableStreamWriter, TaskIdentity, TaskWritten

pytest.importorskip("pyiceberg")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])


def batch(*rows: tuple[int, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "city": city, "at": number} for number, city in rows], SCHEMA)


def target_in(folder: Path, **changes: Any) -> IcebergTarget:
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    return IcebergTarget("shop.orders", SCHEMA, properties=properties, **changes).prepared()


def staged(target: IcebergTarget, identity: BatchIdentity | None, tasks: Sequence[pa.RecordBatch]) -> list[list[Any]]:
    """What the tasks write, through a pickle as on its way to executors and back."""
    shipped = pickle.loads(pickle.dumps(target))
    written = [shipped.write_task(iter([each]), TaskIdentity(identity, n, "a")) for n, each in enumerate(tasks)]
    return pickle.loads(pickle.dumps([each for each in written if each is not None]))


def write(target: IcebergTarget, number: int, tasks: Sequence[pa.RecordBatch], is_overwrite: bool = False) -> None:
    identity = BatchIdentity("q", number)
    target.commit(staged(target, identity, tasks), identity, is_overwrite)


def table_of(target: IcebergTarget) -> Any:
    return load_catalog(target.catalog, target.properties).load_table(target.table)


def rows(target: IcebergTarget) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["city"]) for row in table_of(target).scan().to_arrow().to_pylist())


@pytest.mark.parametrize("partitions", [(), ("city",)])
def test_a_replayed_batch_is_not_stored_twice(tmp_path: Path, partitions: tuple[str, ...]) -> None:
    target = target_in(tmp_path, partition_columns=partitions)
    first = [batch((1, "Praha"), (2, "a b/ü%=")), batch((3, "Praha")), batch()]
    write(target, 0, first)
    files = sorted((tmp_path / "warehouse").rglob("*.parquet"))
    write(target, 0, first)
    assert sorted((tmp_path / "warehouse").rglob("*.parquet")) == files, "the files of the replay are removed"
    target = target_in(tmp_path, partition_columns=partitions)
    write(target, 1, [batch((4, "Brno"))])
    assert rows(target) == [(1, "Praha"), (2, "a b/ü%="), (3, "Praha"), (4, "Brno")]
    snapshots = table_of(target).snapshots()
    assert [each.summary["ottla.batch-id"] for each in snapshots] == ["0", "1"]


def test_an_overwrite_replaces_all_rows_and_a_discard_none(tmp_path: Path) -> None:
    target = target_in(tmp_path)
    write(target, 0, [batch((1, "x"))], is_overwrite=True)
    write(target, 1, [batch((2, "y"))], is_overwrite=True)
    assert rows(target) == [(2, "y")]
    target.discard(staged(target, None, [batch((3, "z"))]))
    assert rows(target) == [(2, "y")]


def test_a_writer_that_comes_second_commits_on_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.exceptions import CommitFailedException

    target = target_in(tmp_path)
    real, calls = IcebergTarget._commit_once, []

    def once(self: IcebergTarget, *arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 1:  # what the catalog answers if the table was changed since it was loaded
            real(self, table_of(self), staged(self, None, [batch((9, "other"))]), None, False)
            raise CommitFailedException("changed")
        real(self, *arguments)

    monkeypatch.setattr(IcebergTarget, "_commit_once", once)
    write(target, 0, [batch((1, "mine"))])
    assert rows(target) == [(1, "mine"), (9, "other")]


@pytest.mark.parametrize("before", [0, 1])
def test_of_two_drivers_with_the_same_batch_one_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """Both have seen that the table does not have it. pyiceberg repeats the commit of the second one by itself."""
    target, identity = target_in(tmp_path), BatchIdentity("q", before)
    for number in range(before):
        write(target, number, [batch((number, "earlier"))])
    slow = staged(target, identity, [batch((9, "x"))])
    real, calls = IcebergTarget._commit_once, []

    def once(self: IcebergTarget, *arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            write(self, before, [batch((9, "x"))])  # the other driver
        real(self, *arguments)

    monkeypatch.setattr(IcebergTarget, "_commit_once", once)
    target.commit(slow, identity, False)
    assert rows(target) == [*((number, "earlier") for number in range(before)), (9, "x")]


def test_a_commit_whose_answer_is_lost_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that repeats a request after a timeout is refused, because its first request has changed the table."""
    from pyiceberg.exceptions import CommitFailedException

    target = target_in(tmp_path)
    real = IcebergTarget._commit_once

    def once(self: IcebergTarget, *arguments: Any) -> None:
        real(self, *arguments)
        raise CommitFailedException("changed")

    monkeypatch.setattr(IcebergTarget, "_commit_once", once)
    write(target, 0, [batch((1, "x"))])
    assert rows(target) == [(1, "x")]


def test_an_abort_after_the_commit_removes_no_file_of_the_table(tmp_path: Path) -> None:
    target, identity = target_in(tmp_path), BatchIdentity("q", 0)
    messages = [TaskWritten(identity, each) for each in staged(target, identity, [batch((1, "x"))])]
    TableStreamWriter(target, None, False).commit(messages, 0)
    TableStreamWriter(target, None, False).abort(messages, 0)
    assert rows(target) == [(1, "x")]


def test_columns_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    target = target_in(tmp_path)
    with pytest.raises(SparkOptionError, match=r"the Iceberg table shop.orders has no column more: it has id, city, at"):
        IcebergTarget("shop.orders", pa.schema([("more", pa.int64())]), properties=target.properties).prepared()
    other = pa.schema([("id", pa.string())])
    text = IcebergTarget("shop.orders", other, properties=target.properties).prepared()
    with pytest.raises(SinkError, match=r"the columns do not fit the Iceberg table shop.orders"):
        text.write_task(iter([pa.RecordBatch.from_pylist([{"id": "x"}], other)]), TaskIdentity(None, 0, "a"))


def test_options_are_checked() -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("id", LongType())])
    with pytest.raises(SparkOptionError, match=r"the ottla_iceberg sink needs the option table, such as shop.orders"):
        iceberg_target({}, schema)
    target, _ = iceberg_target({"table": "shop.orders", "catalog.type": "nonsense"}, schema)
    with pytest.raises(SparkOptionError, match=r"the Iceberg catalog default cannot be opened: .*; give its properties as"):
        target.prepared()


@pytest.mark.slow
def test_a_batch_that_spark_replays_is_stored_once(stream_with_replay: Callable[..., None], tmp_path: Path) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog")
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    options = {f"catalog.{name}": value for name, value in properties.items()}
    stream_with_replay("ottla_iceberg", {**options, "table": "shop.orders", "partitionBy": "city"})
    table = catalogs.load_catalog("default", **properties).load_table("shop.orders")
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["city"]) for row in rows) == [(1, "c1"), (2, "c0"), (3, "c1"), (4, "c0")]
    assert {row["at"] for row in rows} == {datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}
