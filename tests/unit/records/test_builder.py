"""Building batches: the bytes that Apache Kafka's builder makes, where they are not compressed."""

import pytest
from hypothesis import given
from tests.support.logs.record_data import golden_batches, golden_records, records, rows

from ottla.records.batch import BatchView
from ottla.records.builder import build_batch, build_produce_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record, Row
from ottla.records.reader import read_records

PLAIN = [name for name, row in golden_batches().items() if row["batches"][0]["codec"] == "none"]
COMPRESSED = [name for name in golden_batches() if name not in PLAIN]


def rebuilt(name: str) -> bytearray:
    """A golden batch built by Ottla from the records that Apache Kafka reads in it."""
    (golden,) = golden_batches()[name]["batches"]
    made = [Record(*record) for record in golden_records(golden)]
    if golden["is_append_time"]:
        # The records keep the producer's timestamps, although readers see the append time.
        plain = golden_batches()["codec-none"]["batches"][0]
        made = [
            Record(one.offset, stamp[1], one.key, one.value, one.headers)
            for one, stamp in zip(made, plain["records"], strict=True)
        ]
    return build_batch(
        made,
        base_offset=golden["base_offset"],
        last_offset_delta=golden["last_offset"] - golden["base_offset"],
        leader_epoch=golden["leader_epoch"],
        codec=Codec[golden["codec"].upper()],
        append_time_ms=golden["max_timestamp"] if golden["is_append_time"] else None,
        producer_id=golden["producer_id"],
        producer_epoch=golden["producer_epoch"],
        base_sequence=golden["base_sequence"],
        transactional=golden["is_transactional"],
        control=golden["is_control"],
        delete_horizon_ms=golden["delete_horizon_ms"],
        max_timestamp=golden["max_timestamp"] if not made else None,
    )


@pytest.mark.parametrize("name", PLAIN)
def test_the_same_bytes_as_apache_kafka(name: str) -> None:
    assert rebuilt(name).hex() == golden_batches()[name]["bytes"]


@pytest.mark.parametrize("name", COMPRESSED)
def test_the_same_batch_as_apache_kafka_but_for_the_compressed_bytes(name: str) -> None:
    batch = rebuilt(name)
    ours, theirs = BatchView(batch), BatchView(bytes.fromhex(golden_batches()[name]["bytes"]))
    ours.check()
    assert read_records(ours) == read_records(theirs)
    for field in ("base_offset", "attributes", "last_offset_delta", "base_timestamp", "max_timestamp", "count", "leader_epoch"):
        assert getattr(ours, field) == getattr(theirs, field)


@given(records())
def test_what_is_built_is_read(made: list[Record]) -> None:
    view = BatchView(build_batch(made))
    view.check()
    assert read_records(view) == made
    assert (view.base_offset, view.last_offset, view.count) == (made[0].offset, made[-1].offset, len(made))
    assert view.max_timestamp == max(-1, *(record.timestamp for record in made))


@given(rows())
def test_rows_are_numbered_from_zero(made: list[Row]) -> None:
    view = BatchView(build_produce_batch(made, producer_id=5, producer_epoch=1, base_sequence=9))
    view.check()
    assert read_records(view) == [Record(index, *row) for index, row in enumerate(made)]
    assert (view.base_offset, view.last_offset_delta, view.count) == (0, len(made) - 1, len(made))
    assert (view.producer_id, view.producer_epoch, view.base_sequence) == (5, 1, 9)


@pytest.mark.parametrize("codec", list(Codec))
def test_rows_are_the_same_batch_as_records(codec: Codec) -> None:
    made = [(1000 + index, b"key", b"value " * index, (("h", b"1"),)) for index in range(50)]
    assert build_produce_batch(made, codec=codec) == build_batch([Record(i, *row) for i, row in enumerate(made)], codec=codec)


def test_a_compacted_batch_keeps_its_range() -> None:
    view = BatchView(build_batch([Record(12, 5, b"k", b"v")], base_offset=10, last_offset_delta=9))
    assert (view.base_offset, view.last_offset, view.next_offset, view.count) == (10, 19, 20, 1)
    assert [record.offset for record in read_records(view)] == [12]


def test_an_emptied_batch_has_no_codec_and_no_base_timestamp() -> None:
    batch = build_batch([], base_offset=30, last_offset_delta=9, codec=Codec.ZSTD, max_timestamp=77)
    view = BatchView(batch)
    view.check()
    assert (len(batch), view.count, view.codec, view.base_timestamp, view.max_timestamp) == (61, 0, Codec.NONE, -1, 77)
    assert (view.base_offset, view.last_offset) == (30, 39)
    assert read_records(view) == []


def test_empty_batch_needs_an_offset_range() -> None:
    with pytest.raises(ValueError, match="base_offset and last_offset_delta"):
        build_batch([], base_offset=5)
    with pytest.raises(ValueError, match="at least one record"):
        build_produce_batch([])


@pytest.mark.parametrize("offset", [9, 10 + 2**31])
def test_records_outside_the_offset_range_are_refused(offset: int) -> None:
    with pytest.raises(ValueError, match="does not fit into that batch"):
        build_batch([Record(offset, 0, None, None)], base_offset=10, last_offset_delta=0)


def test_compression_level_is_used() -> None:
    made = [Record(index, 0, b"k", b"some words, some words %d" % (index % 7)) for index in range(400)]
    sizes = [len(build_batch(made, codec=Codec.GZIP, level=level)) for level in (1, 9)]
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize("field", [{"producer_id": 2**63}, {"producer_epoch": 2**15}, {"leader_epoch": 2**31}])
def test_fields_that_do_not_fit_are_refused(field: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="too large"):
        build_batch([Record(0, 0, None, None)], **field)  # type: ignore[arg-type]
