"""Fetched batches as columns and tables."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.columns import arrow_schema, to_arrow, to_columns, to_table, trimmed
from ottla.client.consumer.reader import Views
from ottla.errors import CorruptBatchError
from ottla.ids import TopicPartition
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.kernels import Record
from ottla.records.reader import read_records
from ottla.records.spare_buffers import SpareBuffers

PLACE = TopicPartition("t", 3)


def views(first: int, *batches: list[Record]) -> Views:
    return Views(first, [BatchView(build_batch(each)) for each in batches])


def numbered(*offsets: int) -> list[Record]:
    return [Record(offset, 1_000 + offset, None, b"%d" % offset) for offset in offsets]


@given(first=st.integers(0, 12), end=st.integers(0, 12))
def test_trimming_leaves_what_lies_in_the_range(first: int, end: int) -> None:
    found = trimmed(views(first, numbered(0, 1, 2), numbered(3, 5, 6), numbered(9)), end)
    offsets = [record.offset for batch in found for record in read_records(batch)]
    assert offsets == [offset for offset in (0, 1, 2, 3, 5, 6, 9) if first <= offset < end]


def test_batches_inside_of_the_range_are_not_copied() -> None:
    given = views(1, numbered(0, 1), numbered(2, 3))
    assert trimmed(given)[1] is given.batches[1]


def test_a_table_has_every_column() -> None:
    records = [Record(5, 1_000, b"k", b"v", (("a", b"1"), ("b", None))), Record(6, 2_000, None, None)]
    batch = to_arrow(PLACE, to_columns(PLACE, views(0, records)))
    batch.validate(full=True)
    assert batch.schema == arrow_schema()
    rows = batch.to_pylist()
    assert rows[0] | {"timestamp": None} == {
        "topic": "t",
        "partition": 3,
        "offset": 5,
        "timestamp": None,
        "key": b"k",
        "value": b"v",
        "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
    }
    assert (rows[1]["key"], rows[1]["value"], rows[1]["headers"], rows[1]["timestamp"].timestamp()) == (None, None, [], 2.0)


def test_a_table_of_several_partitions_has_a_chunk_for_each() -> None:
    table = to_table({PLACE: views(0, numbered(0, 1)), TopicPartition("u", 0): views(0, numbered(4))})
    assert table.column("topic").to_pylist() == ["t", "t", "u"]
    assert table.column("offset").to_pylist() == [0, 1, 4]
    assert to_table({}).num_rows == 0


def test_large_buffers_are_used_again_when_the_table_is_gone() -> None:
    spare = SpareBuffers()

    def table(letter: bytes) -> Any:
        return to_table({PLACE: views(0, [Record(n, 1, None, letter * 1000) for n in range(200)])}, spare)

    first = table(b"a")
    second = table(b"b")
    kept = spare.kept_bytes
    assert kept >= 400_000
    assert set(first.column("value").to_pylist()) == {b"a" * 1000}
    assert set(second.column("value").to_pylist()) == {b"b" * 1000}
    del second
    third = table(b"c")
    assert spare.kept_bytes == kept
    assert set(first.column("value").to_pylist()) == {b"a" * 1000}
    assert set(third.column("value").to_pylist()) == {b"c" * 1000}
    to_table({PLACE: views(0, numbered(0))}, spare)
    assert spare.kept_bytes == 0
    assert set(third.column("value").to_pylist()) == {b"c" * 1000}


def test_a_table_does_not_import_pandas() -> None:
    """pyarrow imports it behind some calls, which then take half a second the first time."""
    script = """
import sys
from ottla.client.consumer.columns import to_table
from ottla.client.consumer.reader import Views
from ottla.ids import TopicPartition
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.kernels import Record
table = to_table({TopicPartition("t", 3): Views(0, [BatchView(build_batch([Record(0, 1, b"k", b"v", (("a", b"1"),))]))])})
assert table.num_rows == 1
print([name for name in ("pandas", "numpy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "pandas" not in done.stdout


def test_damage_is_told_with_its_place() -> None:
    batch = build_batch(numbered(4, 5))
    batch[61] = 0x7F  # the length of the first record
    with pytest.raises(CorruptBatchError, match="t-3 is damaged between offsets 4 and 6") as caught:
        to_columns(PLACE, Views(4, [BatchView(batch)]))
    assert caught.value.next_offset == 6
