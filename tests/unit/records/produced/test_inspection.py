"""Which compressed batches are unpacked before an append: all of a node with little load, a sample of a busy one."""

from random import Random
from typing import Any

import pytest

from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec, compress
from ottla.records.kernels import Record
from ottla.records.layout import COMPRESSED_COUNT_MAX
from ottla.records.produced import inspection as inspection_module
from ottla.records.produced.inspection import INSPECTED_BYTES_MAX, SAVED_BYTES_MAX, Inspection

NOW = 1_700_000_000_000
CODECS = [codec for codec in Codec if codec is not Codec.NONE]


def batch(codec: Codec, count: int = 3, value: bytes = b"value") -> BatchView:
    return BatchView(build_batch([Record(index, NOW + index, None, value, ()) for index in range(count)], codec=codec))


def passes(inspection: Inspection, view: BatchView, now_ms: int = NOW, **changed: Any) -> bool:
    payload = memoryview(changed.get("payload", view.payload))
    max_timestamp = changed.get("max_timestamp", view.max_timestamp)
    return inspection.passes(view.codec, payload, changed.get("count", view.count), view.base_timestamp, max_timestamp, now_ms)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_passes_only_as_its_header_describes_it(codec: Codec) -> None:
    view, inspection = batch(codec), Inspection()
    assert passes(inspection, view)
    assert not passes(inspection, view, count=4)
    assert not passes(inspection, view, count=2)
    assert not passes(inspection, view, max_timestamp=NOW)
    assert not passes(inspection, view, payload=Random(1).randbytes(500))
    assert not passes(inspection, view, payload=compress(codec, b"these are no records, " * 50))


def test_records_that_do_not_count_from_0_do_not_pass() -> None:
    view = BatchView(build_batch([Record(offset, NOW, None, b"v", ()) for offset in (0, 5)], codec=Codec.ZSTD))
    assert not passes(Inspection(), view)


@pytest.mark.parametrize("codec", CODECS)
def test_a_count_that_the_frame_cannot_hold_does_not_pass_whatever_the_load(codec: Codec) -> None:
    view, inspection = batch(codec), Inspection()
    inspection._left, inspection._now_ms = 0, NOW
    assert passes(inspection, view, payload=compress(codec, b"these are no records, " * 50))
    assert not passes(inspection, view, count=2**31 - 1)
    assert not passes(inspection, batch(Codec.ZSTD, 1, bytes(64 << 20)), count=COMPRESSED_COUNT_MAX + 1)


def exhaust(inspection: Inspection, now_ms: int = NOW) -> int:
    """Inspect until garbage in a right frame passes; returns after how many batches."""
    view = batch(Codec.LZ4, 10, Random(2).randbytes(90_000))
    garbage = compress(Codec.LZ4, Random(3).randbytes(900_000))
    for number in range(1000):
        if passes(inspection, view, now_ms, payload=garbage):
            return number
        assert passes(inspection, view, now_ms)
    raise AssertionError("the budget has no end")


def test_a_busy_node_inspects_a_sample() -> None:
    inspection = Inspection()
    saved = exhaust(inspection)
    assert 1 < saved <= SAVED_BYTES_MAX // 900_000
    assert exhaust(inspection) == 0
    later = NOW + SAVED_BYTES_MAX // inspection_module.BYTES_PER_MS
    assert exhaust(inspection, later) == saved
    assert exhaust(inspection, NOW) == 0  # the clock was set back


def test_a_batch_that_expands_far_is_left_to_readers() -> None:
    inspection = Inspection()
    bomb = batch(Codec.ZSTD, 1, bytes(INSPECTED_BYTES_MAX))
    assert passes(inspection, bomb)
    assert inspection._left < SAVED_BYTES_MAX - INSPECTED_BYTES_MAX + 1
