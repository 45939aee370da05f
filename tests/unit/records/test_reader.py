"""Reading records: Apache Kafka's own, and batches with a wrong header or wrong records."""

from struct import pack_into

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import golden_batches, golden_records, plain, records

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.patch import set_crc
from ottla.records.reader import iterate_records, read_records


@pytest.mark.parametrize("name", sorted(golden_batches()))
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_records_that_apache_kafka_finds(name: str, kind: type) -> None:
    golden = golden_batches()[name]
    view = BatchView(kind(bytes.fromhex(golden["bytes"])))
    assert [plain(record) for record in read_records(view)] == golden_records(golden["batches"][0])


@given(records(), st.sampled_from(list(Codec)))
def test_one_at_a_time_is_the_same_as_all(made: list[Record], codec: Codec) -> None:
    view = BatchView(build_batch(made, codec=codec))
    found = iterate_records(view)
    assert next(found) == made[0]
    assert list(found) == made[1:]
    with pytest.raises(StopIteration):
        next(found)


def test_a_batch_inside_a_larger_buffer() -> None:
    made = [Record(5, 6, b"k", b"v")]
    data = b"123" + bytes(build_batch(made)) + b"456"
    assert read_records(BatchView(data, 3)) == made
    assert read_records(BatchView(bytearray(data), 3)) == made


@pytest.mark.parametrize("count", [0, 2, 4, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("codec", list(Codec))
def test_wrong_record_count_is_refused(count: int, codec: Codec) -> None:
    data = build_batch([Record(index, 0, b"k", b"v") for index in range(3)], codec=codec)
    pack_into(">i", data, 57, count)
    set_crc(data, 0, len(data))
    with pytest.raises(CorruptRecords):
        read_records(BatchView(data))


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_iterator_yields_records_up_to_the_damage_then_ends(kind: type) -> None:
    data = build_batch([Record(index, 0, b"k", b"v") for index in range(3)])
    data[-1] = 9  # a header count, and no headers
    found = iterate_records(BatchView(kind(data)))
    assert [next(found).offset, next(found).offset] == [0, 1]
    with pytest.raises(CorruptRecords, match="record 2") as caught:
        next(found)
    assert caught.value.position == 18
    assert list(found) == []


def test_decompression_is_bounded() -> None:
    data = build_batch([Record(0, 0, None, bytes(3_000_000))], codec=Codec.ZSTD)
    assert len(data) < 1000
    assert len(read_records(BatchView(data), decompressed_bytes_max=3_000_100)) == 1
    with pytest.raises(CorruptRecords, match="more than the 2000000 bytes allowed"):
        read_records(BatchView(data), decompressed_bytes_max=2_000_000)


def test_a_cut_batch_is_refused() -> None:
    with pytest.raises(CorruptRecords, match="cut short"):
        read_records(BatchView(build_batch([Record(0, 0, b"k", b"v")])[:-1]))
