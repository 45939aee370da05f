"""Changes in place: only the changed field and, if necessary, the CRC."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import golden_batches, records

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.patch import set_append_time, set_base_offset_and_epoch, set_max_timestamp
from ottla.records.reader import read_records


def batch(**options: object) -> bytearray:
    found = [Record(0, 1000, b"a", b"1"), Record(1, 1005, b"b", b"2")]
    return build_batch(found, **options)  # type: ignore[arg-type]


@given(st.integers(0, 2**63 - 100), st.integers(-1, 2**31 - 1), records())
def test_place_in_the_log_needs_no_new_crc(offset: int, epoch: int, made: list[Record]) -> None:
    data = bytearray(b"xyz") + build_batch(made) + bytearray(b"xyz")
    before = bytes(data)
    set_base_offset_and_epoch(data, 3, offset, epoch)
    view = BatchView(data, 3)
    view.check()
    assert (view.base_offset, view.leader_epoch) == (offset, epoch)
    assert data[:3] == before[:3]
    assert data[11:15] == before[11:15]
    assert data[19:] == before[19:]


@pytest.mark.parametrize("codec", list(Codec))
def test_append_time_gives_every_record_that_time(codec: Codec) -> None:
    data = batch(codec=codec)
    payload = bytes(BatchView(data).payload)
    set_append_time(data, 0, 777)
    view = BatchView(data)
    view.check()
    assert view.is_append_time
    assert view.max_timestamp == 777
    assert view.codec is codec
    assert bytes(view.payload) == payload
    assert [record.timestamp for record in read_records(view)] == [777, 777]


def test_append_time_is_what_apache_kafka_writes() -> None:
    data = bytearray.fromhex(golden_batches()["codec-none"]["bytes"])
    set_append_time(data, 0, 1_700_000_000_777)
    assert data.hex() == golden_batches()["append-time"]["bytes"]


def test_setting_max_timestamp_undoes_append_time() -> None:
    data = batch(append_time_ms=9)
    set_max_timestamp(data, 0, 1005)
    BatchView(data).check()
    assert data == batch()


def test_attributes_without_a_meaning_are_dropped() -> None:
    data = batch(transactional=True, delete_horizon_ms=4)
    data[21] = 0x7F
    set_append_time(data, 0, 5)
    assert BatchView(data).attributes == 0x08 | 0x10 | 0x40


def test_a_memoryview_is_patched_through() -> None:
    owner = batch()
    set_append_time(memoryview(owner), 0, 5)
    assert BatchView(owner).is_append_time


def test_a_batch_that_is_cut_short_is_not_patched() -> None:
    data = batch()[:-1]
    before = bytes(data)
    with pytest.raises(CorruptRecords):
        set_append_time(data, 0, 5)
    assert data == before
