"""The view of a batch's header: the fields of Apache Kafka's batches, and every kind of malformed batch."""

from struct import pack_into

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import golden_batches

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView, iterate_batches, sequence_after
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.layout import HEADER_SIZE, LENGTH_AT, MAGIC_AT, NO_SEQUENCE

PLACE = ("base_offset", "last_offset", "next_offset", "size", "leader_epoch", "crc", "count")
TIMES = ("base_timestamp", "max_timestamp", "is_append_time", "delete_horizon_ms")
PRODUCER = ("producer_id", "producer_epoch", "base_sequence", "last_sequence", "has_producer_id")
HEADER_FIELDS = (*PLACE, *TIMES, *PRODUCER, "is_transactional", "is_control")


def batch(count: int = 3, **options: int) -> bytearray:
    return build_batch([Record(index, 1000 + index, b"k", b"v") for index in range(count)], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(golden_batches()))
def test_the_header_says_what_apache_kafka_reads_in_it(name: str) -> None:
    golden = golden_batches()[name]
    view = BatchView(bytes.fromhex(golden["bytes"]))
    view.check()
    (expected,) = golden["batches"]
    assert {field: getattr(view, field) for field in HEADER_FIELDS} == {field: expected[field] for field in HEADER_FIELDS}
    assert view.codec.title == expected["codec"]
    assert view.has_delete_horizon == (expected["delete_horizon_ms"] is not None)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])
def test_any_buffer_type_is_accepted(kind: type) -> None:
    data = b"before" + bytes(batch()) + b"after"
    view = BatchView(kind(data), 6)
    view.check()
    assert (view.count, view.size, view.position) == (3, len(data) - 11, 6)
    assert bytes(view.data) == data[6:-5]
    assert bytes(view.payload) == data[6 + HEADER_SIZE : -5]


@pytest.mark.parametrize("kept", [0, 1, 11, 60])
def test_a_cut_header_is_refused_with_its_position(kept: int) -> None:
    with pytest.raises(CorruptRecords, match="cut short") as caught:
        BatchView(bytes(7) + bytes(batch()[:kept]), 7)
    assert caught.value.position == 7


def test_a_position_before_the_buffer_is_refused() -> None:
    with pytest.raises(CorruptRecords):
        BatchView(bytes(batch()), -3)


def test_a_cut_batch_is_refused() -> None:
    with pytest.raises(CorruptRecords, match="bytes are there"):
        BatchView(bytes(batch()[:-1])).check()


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_length_shorter_than_the_header_is_refused(length: int) -> None:
    data = batch()
    pack_into(">i", data, 8, length)
    with pytest.raises(CorruptRecords, match="less than its own header"):
        BatchView(data).check()


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_magics_are_refused(magic: int) -> None:
    data = batch()
    pack_into(">b", data, 16, magic)
    with pytest.raises(CorruptRecords, match=f"magic {magic}"):
        BatchView(data).check()


@given(st.data())
def test_any_changed_bit_that_the_crc_covers_is_found(data: st.DataObject) -> None:
    damaged = batch()
    position = data.draw(st.integers(21, len(damaged) - 1))
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptRecords, match="CRC"):
        BatchView(damaged).check()


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_refused(number: int) -> None:
    data = batch()
    pack_into(">h", data, 21, number)
    with pytest.raises(CorruptRecords, match=f"codec {number}"):
        _ = BatchView(data).codec


def test_codecs_are_found_beside_other_attributes() -> None:
    data = batch(codec=Codec.ZSTD, append_time_ms=5, transactional=True, control=True, delete_horizon_ms=9)
    view = BatchView(data)
    assert view.codec is Codec.ZSTD
    assert view.is_compressed
    assert (view.is_append_time, view.is_transactional, view.is_control, view.has_delete_horizon) == (True,) * 4
    assert view.delete_horizon_ms == 9


@pytest.mark.parametrize(
    ("sequence", "steps", "expected"),
    [(0, 0, 0), (5, 3, 8), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 2, 4, 2), (0, 2**31 - 1, 2**31 - 1)],
)
def test_sequences_wrap_to_zero(sequence: int, steps: int, expected: int) -> None:
    assert sequence_after(sequence, steps) == expected


def test_last_sequence() -> None:
    assert BatchView(batch()).last_sequence == NO_SEQUENCE
    assert BatchView(batch(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)).last_sequence == 0


def test_batches_are_iterated_in_order() -> None:
    data = bytes(batch(1)) + bytes(batch(2)) + bytes(batch(3))
    assert [(view.count, view.position) for view in iterate_batches(data)] == [(1, 0), (2, 70), (3, 149)]
    assert [view.count for view in iterate_batches(data, 70)] == [2, 3]
    assert list(iterate_batches(b"")) == []


@pytest.mark.parametrize("kept", [1, 60, 61, 78])
def test_a_torn_tail_is_refused_with_its_position_after_what_is_whole(kept: int) -> None:
    found = iterate_batches(bytes(batch(1)) + bytes(batch(2))[:kept])
    assert next(found).count == 1
    with pytest.raises(CorruptRecords) as caught:
        next(found)
    assert caught.value.position == 70


@pytest.mark.parametrize("kept", [0, 1, 11, 12, 60, 61, 78])
def test_a_cut_end_is_left_out_where_it_is_allowed(kept: int) -> None:
    data = bytes(batch(1)) + bytes(batch(2))[:kept]
    assert [view.count for view in iterate_batches(data, allow_cut_end=True)] == [1]


@pytest.mark.parametrize(("at", "value"), [(LENGTH_AT, 0xFF), (MAGIC_AT, 1)])
def test_a_damaged_batch_is_refused_where_a_cut_end_is_allowed(at: int, value: int) -> None:
    data = bytearray(batch(1) + batch(2))
    data[70 + at] = value
    found = iterate_batches(data, allow_cut_end=True)
    assert next(found).count == 1
    with pytest.raises(CorruptRecords):
        next(found)


def test_repr_shows_the_main_fields() -> None:
    assert "base_offset=0, last_offset_delta=2, count=3" in repr(BatchView(batch()))
