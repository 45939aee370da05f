"""The layout's numbers agree with what reads batches: the header's struct, the view, and the kernels of both variants."""

from typing import Any

import pytest

from ottla.config.topic import LogConfig
from ottla.records import layout
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.decline import Decline
from ottla.records.kernels import Record
from ottla.records.produced.inspection import Inspection

FIELDS = [
    "base_offset",
    "batch_length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
]


@pytest.mark.parametrize(
    ("at", "size", "field"),
    [
        (layout.LENGTH_AT, 4, "batch_length"),
        (layout.LEADER_EPOCH_AT, 4, "leader_epoch"),
        (layout.MAGIC_AT, 1, "magic"),
        (layout.CRC_AT, 4, "crc"),
        (layout.ATTRIBUTES_AT, 2, "attributes"),
        (layout.LAST_OFFSET_DELTA_AT, 4, "last_offset_delta"),
        (layout.BASE_TIMESTAMP_AT, 8, "base_timestamp"),
        (layout.MAX_TIMESTAMP_AT, 8, "max_timestamp"),
        (layout.PRODUCER_ID_AT, 8, "producer_id"),
        (layout.PRODUCER_EPOCH_AT, 2, "producer_epoch"),
        (layout.BASE_SEQUENCE_AT, 4, "base_sequence"),
        (layout.COUNT_AT, 4, "count"),
    ],
)
def test_each_field_is_read_where_the_layout_has_it(at: int, size: int, field: str) -> None:
    data = bytearray(layout.HEADER_SIZE)
    data[at + size - 1] = 7
    view = BatchView(data)
    assert {name: getattr(view, name) for name in FIELDS if getattr(view, name)} == {field: 7}


def test_the_layout_is_consistent() -> None:
    assert layout.HEADER.size == layout.HEADER_SIZE == layout.COUNT_AT + 4
    assert layout.PLACE.size == layout.MAGIC_AT
    assert layout.ATTRIBUTE_BITS_AT == layout.ATTRIBUTES_AT + 1
    assert layout.CRC_START == layout.CRC_AT + 4 == layout.ATTRIBUTES_AT


def test_kernels_read_the_header_where_the_layout_has_it(variant: Any) -> None:
    batch = build_batch(
        [Record(0, 5, b"k", b"v"), Record(1, 9, b"k", b"v")], producer_id=2**40 + 3, producer_epoch=7, base_sequence=11
    )
    limits = variant.batch.BatchLimits(LogConfig(), variant.columns.RecordWalk(), Inspection())
    found = limits.check(batch, 0, len(batch), memoryview(batch)[layout.CRC_START :], 9, True, 13)
    view = BatchView(batch)
    assert found.decline == Decline.NO
    for field in ("attributes", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count"):
        assert getattr(found, field) == getattr(view, field), field
