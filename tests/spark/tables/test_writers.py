"""What all table writers share."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from ottla.spark import each_batch
from ottla.spark.decoding.decode import decoder_for
from ottla.spark.errors import SparkOptionError
from ottla.spark.tables.delta import DeltaTarget
from ottla.spark.tables.iceberg import IcebergTarget
from ottla.spark.tables.postgres.sink import PostgresTarget
from ottla.spark.tables.writers import BatchIdentity, TableStreamWriter, TaskWritten, identity_of_options, in_utc


class Recorder:
    """A target that keeps what it is asked to do."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def write_task(self, batches: Any, task: Any) -> Any:
        raise AssertionError("not in this test")

    def commit(self, written: list[Any], batch: BatchIdentity | None, is_overwrite: bool) -> None:
        self.calls.append(("commit", written, batch, is_overwrite))

    def discard(self, written: list[Any], may_be_committed: bool = False) -> None:
        self.calls.append(("discard", written, may_be_committed))


def test_only_tasks_with_rows_are_committed_or_discarded() -> None:
    batch = BatchIdentity("q", 3)
    messages = [None, TaskWritten(batch, "a"), TaskWritten(batch, None), TaskWritten(batch, "b")]
    target = Recorder()
    writer = TableStreamWriter(target, None, False)
    writer.commit(messages, 3)
    writer.abort(messages, 3)
    writer.commit([None, TaskWritten(batch, None)], 3)
    writer.abort([None], 3)
    assert target.calls == [("commit", ["a", "b"], batch, False), ("discard", ["a", "b"], False)]


def test_an_abort_says_that_a_commit_may_have_been_made() -> None:
    target = Recorder()
    TableStreamWriter(target, None, False).abort([TaskWritten(BatchIdentity("q", 3), "a")], 3)
    assert target.calls == [("discard", ["a"], True)]


def test_an_overwrite_without_rows_empties_the_table() -> None:
    target = Recorder()
    TableStreamWriter(target, None, True).commit([TaskWritten(BatchIdentity("q", 0), None)], 0)
    assert target.calls == [("commit", [], BatchIdentity("q", 0), True)]


def test_timestamps_are_brought_to_utc_at_every_depth() -> None:
    local = pa.timestamp("us", tz="Europe/Berlin")
    nested = pa.struct([("l", pa.list_(local)), ("m", pa.map_(pa.string(), local)), ("n", pa.timestamp("us"))])
    schema = pa.schema([("t", local), ("s", nested)])
    found = in_utc(pa.RecordBatch.from_pylist([{"t": 5, "s": {"l": [6], "m": [("k", 7)], "n": 8}}], schema))
    assert "Berlin" not in str(found.schema)
    assert found.column(0).cast(pa.int64()).to_pylist() == [5]


def test_options_name_a_batch() -> None:
    assert identity_of_options({}) is None
    assert identity_of_options({"txnAppId": "x", "txnVersion": "12"}) == ("x", 12)
    for options in ({"txnAppId": "x"}, {"txnVersion": "1"}, {"txnAppId": "x", "txnVersion": "one"}):
        with pytest.raises(SparkOptionError, match="txnAppId and txnVersion belong together"):
            identity_of_options(options)


def test_outside_of_a_query_a_name_is_needed(spark: Any) -> None:
    with pytest.raises(SparkOptionError, match="each_batch cannot see the query's id here: give it a name"):
        each_batch("ottla_delta", path="x")(spark.range(1), 0)


def test_a_name_takes_the_place_of_the_querys_id(spark: Any, tmp_path: Any) -> None:
    deltalake = pytest.importorskip("deltalake")
    write = each_batch("ottla_delta", name="mine", path=str(tmp_path / "t"))
    for batch_id in (0, 0, 1):
        write(spark.range(2), batch_id)
    table = deltalake.DeltaTable(tmp_path / "t")
    assert table.to_pyarrow_table().num_rows == 4
    assert table.transaction_version("mine") == 1


SCHEMA = pa.schema([("id", pa.int64())])


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deltalake", "pyiceberg.catalog", "psycopg", "fastavro"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SparkOptionError, match=r"Delta tables need the package deltalake: pip install 'ottla\[delta\]'"):
        DeltaTarget("x", SCHEMA).prepare()
    with pytest.raises(SparkOptionError, match=r"Iceberg tables need the package pyiceberg: pip install 'ottla\[iceberg\]'"):
        IcebergTarget("shop.orders", SCHEMA).prepared()
    with pytest.raises(SparkOptionError, match=r"PostgreSQL needs the package psycopg: pip install 'ottla\[postgres\]'"):
        PostgresTarget("postgresql://localhost/x", "t", (("id", "bigint"),)).prepare()
    with pytest.raises(SparkOptionError, match=r"Avro needs the package fastavro: pip install 'ottla\[spark\]'"):
        decoder_for("avro", "value", "long", None, {})


def test_looking_the_formats_up_loads_none_of_them() -> None:
    """Spark imports every module named pyspark_* to find one format: an import that fails would lose all of them."""
    modules = ["pyspark_ottla", "pyspark_ottla_postgres", "pyspark_ottla_delta", "pyspark_ottla_iceberg"]
    packages = ["psycopg", "deltalake", "pyiceberg", "fastavro"]
    check = f"assert not set({packages}) & set(sys.modules); print(pyspark_ottla_delta.DefaultSource.name())"
    script = f"import sys, {', '.join(modules)}; {check}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ottla_delta\n"), done.stderr
