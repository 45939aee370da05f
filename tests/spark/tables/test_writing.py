"""What all table writers share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.spark.tables.writers import BatchIdentity, TableStreamWriter, TaskWritten, in_utc


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
