"""Batches that compaction cannot read, and those that are too large for the event loop."""

import pytest

from ottla.log.compaction.cleaner import RECORDS_MAX, NeedsHelper, unpacked, work_bytes
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.layout import COUNT_AT


def batch(value: bytes, codec: Codec = Codec.ZSTD) -> bytearray:
    return build_batch([Record(0, 0, b"key", value, ())], codec=codec)


def test_records_or_a_reason_come_back() -> None:
    whole, garbage = batch(b"value"), batch(b"value")
    garbage[70:] = bytes(len(garbage) - 70)
    assert unpacked(BatchView(whole)) == [Record(0, 0, b"key", b"value", ())]
    assert "damaged" in str(unpacked(BatchView(garbage)))


def test_a_count_without_bounds_is_not_unpacked() -> None:
    data = batch(b"value")
    data[COUNT_AT:] = (RECORDS_MAX + 1).to_bytes(4, "big") + data[COUNT_AT + 4 :]
    assert str(unpacked(BatchView(data))).startswith("it has 1,000,001 records")


def test_a_batch_beyond_the_callers_limit_needs_a_helper() -> None:
    data = batch(bytes(1 << 20))
    assert isinstance(unpacked(BatchView(data)), list)
    with pytest.raises(NeedsHelper, match="1048576 bytes allowed"):
        unpacked(BatchView(data), 1 << 20)


def test_work_is_what_the_batch_unpacks_to() -> None:
    plain, packed = batch(bytes(1 << 20), Codec.NONE), batch(bytes(1 << 20))
    assert work_bytes(BatchView(plain)) == len(plain)
    assert len(packed) < 1000 < 1 << 20 <= work_bytes(BatchView(packed)) < 2 << 20
