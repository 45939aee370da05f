"""Records as consumers get them: equal to those of `reader.py`, in both variants, in one call or many."""

import gc
import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.layout import CRC_AT, CRC_START, HEADER_SIZE
from ottla.records.reader import read_records

fields = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5), fields), max_size=3).map(tuple)


@st.composite
def rows(draw: st.DrawFn) -> list[Record]:
    offset, found = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 8))):
        found.append(Record(offset, draw(st.integers(0, 2**41)), draw(fields), draw(fields), draw(headers)))
        offset += draw(st.integers(1, 3))
    return found


def taken(variant: Any, data: bytes, limit: int, from_offset: int = 0, **checks: bool) -> list[tuple[Any, ...]]:
    """The records of the batch at byte 4 of `data`, `limit` at a time, as tuples."""
    decoder = variant.consume.RecordDecoder(bytearray(data), "topic", 3, from_offset)
    assert decoder.open_plain(4, checks.get("is_checked", True), checks.get("is_committed_only", False))
    found: list[Any] = []
    while decoder.left:
        count = len(found)
        assert decoder.take(found, limit, None, None) == len(found) - count <= limit
    return [each.astuple() for each in found]


@settings(max_examples=examples(200), deadline=None)
@given(records=rows(), limit=st.integers(1, 9), epoch=st.integers(-1, 5))
def test_records_are_those_of_the_reader(variant: Any, records: list[Record], limit: int, epoch: int) -> None:
    batch = build_batch(records, leader_epoch=epoch)
    expected = [
        ("topic", 3, each.offset, each.timestamp, each.key, each.value, each.headers, 0, epoch)
        for each in read_records(BatchView(batch))
    ]
    assert taken(variant, b"head" + batch + b"tail", limit) == expected


@settings(max_examples=examples(200), deadline=None)
@given(records=rows(), limit=st.integers(1, 9), data=st.data())
def test_records_below_the_position_are_passed_over(variant: Any, records: list[Record], limit: int, data: Any) -> None:
    position = data.draw(st.integers(records[0].offset, records[-1].offset))
    found = taken(variant, b"head" + build_batch(records), limit, position)
    assert [each[2] for each in found] == [each.offset for each in records if each.offset >= position]


@settings(max_examples=examples(400), deadline=None)
@given(records=rows(), data=st.data(), limit=st.integers(1, 9))
def test_both_variants_find_the_same_in_damaged_records(variants: Any, records: list[Record], data: Any, limit: int) -> None:
    batch = build_batch(records)
    at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    outcomes = []
    for variant in variants:
        decoder = variant.consume.RecordDecoder(batch, "topic", 3, 0)
        assert decoder.open_plain(0, False, False)
        found: list[Any] = []
        error = None
        try:
            while decoder.left:
                decoder.take(found, limit, None, None)
        except CorruptRecords as damage:
            error = (str(damage), damage.position)
        outcomes.append(([each.astuple() for each in found], error, decoder.next_offset))
    assert outcomes[0] == outcomes[1]


@settings(max_examples=examples(400), deadline=None)
@given(records=rows(), data=st.data(), is_committed_only=st.booleans())
def test_both_variants_decline_the_same_batches(
    variants: Any, records: list[Record], data: Any, is_committed_only: bool
) -> None:
    codec = data.draw(st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP]))
    is_transactional = data.draw(st.booleans())
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0} if is_transactional else {}
    batch = build_batch(records, codec=codec, transactional=is_transactional, **producer)
    if data.draw(st.booleans()):
        batch[data.draw(st.integers(0, len(batch) - 1))] ^= data.draw(st.integers(1, 255))
        if data.draw(st.booleans()):
            batch[CRC_AT:CRC_START] = crc32c(bytes(batch[CRC_START:])).to_bytes(4, "big")
    at = data.draw(st.sampled_from([0, 0, 0, -1, 1, len(batch)]))
    pure, compiled = (
        variant.consume.RecordDecoder(batch, "t", 0, 0).open_plain(at, True, is_committed_only) for variant in variants
    )
    assert pure == compiled


@pytest.mark.parametrize(
    ("batch", "committed_only"),
    [
        (build_batch([Record(0, 0, None, b"v")], codec=Codec.GZIP), False),
        (build_batch([Record(0, 0, b"\0\0\0\1", b"")], control=True), False),
        (build_batch([Record(0, 0, None, b"v")], transactional=True, producer_id=1, producer_epoch=0, base_sequence=0), True),
        (build_batch([Record(0, 0, None, b"v")])[:-1], False),
    ],
    ids=["compressed", "control", "transactional", "cut"],
)
def test_batches_that_are_not_plain_are_declined(variant: Any, batch: bytearray, committed_only: bool) -> None:
    assert not variant.consume.RecordDecoder(batch, "t", 0, 0).open_plain(0, True, committed_only)


def test_a_wrong_crc_declines_only_where_it_is_checked(variant: Any) -> None:
    batch = build_batch([Record(0, 0, None, b"v")])
    batch[CRC_AT] ^= 1
    assert not variant.consume.RecordDecoder(batch, "t", 0, 0).open_plain(0, True, False)
    assert variant.consume.RecordDecoder(batch, "t", 0, 0).open_plain(0, False, False)


def test_the_append_time_is_every_records_timestamp(variant: Any) -> None:
    batch = build_batch([Record(0, 5, None, b"a"), Record(1, 6, None, b"b")], append_time_ms=99)
    assert [each[3:8:4] for each in taken(variant, b"head" + batch, 9)] == [(99, 1), (99, 1)]


def decoder_of(variant: Any, *values: bytes) -> Any:
    batch = build_batch([Record(index, 0, None, value) for index, value in enumerate(values)])
    decoder = variant.consume.RecordDecoder(batch, "t", 0, 0)
    assert decoder.open_plain(0, True, False)
    return decoder


def test_deserializers_get_topic_headers_and_bytes_but_not_null(variant: Any) -> None:
    batch = build_batch([Record(0, 0, b"k", b"v", (("h", b"x"),)), Record(1, 0, None, None)])
    decoder = variant.consume.RecordDecoder(batch, "t", 0, 0)
    decoder.open_plain(0, True, False)
    found: list[Any] = []
    decoder.take(found, 9, lambda *given: ("key", *given), lambda *given: ("value", *given))
    header = (("h", b"x"),)
    assert [(each.key, each.value) for each in found] == [
        (("key", "t", header, b"k"), ("value", "t", header, b"v")),
        (None, None),
    ]


def test_a_record_that_cannot_be_deserialized_ends_the_call_before_it(variant: Any) -> None:
    decoder = decoder_of(variant, b"1", b"2", b"bad", b"4")
    found: list[Any] = []
    assert decoder.take(found, 9, None, lambda topic, headers, data: int(data)) == 2
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            decoder.take(found, 9, None, lambda topic, headers, data: int(data))
        assert (decoder.failed.offset, decoder.failed.value, decoder.is_key_failed, decoder.next_offset) == (
            2,
            b"bad",
            False,
            2,
        )
    assert [each.value for each in found] == [1, 2]


def test_records_given_apart_are_read_in_the_same_way(variant: Any) -> None:
    batch = build_batch([Record(7, 1, None, b"a"), Record(9, 2, None, b"b")])
    view = BatchView(batch)
    decoder = variant.consume.RecordDecoder(view.payload, "t", 0, 8)
    decoder.open_records(view.count, view.base_offset, view.base_timestamp, False, 4)
    found: list[Any] = []
    assert decoder.take(found, 9, None, None) == 1
    assert (found[0].offset, found[0].leader_epoch, decoder.left) == (9, 4, 0)
    with pytest.raises(CorruptRecords, match="cannot be the 50 records"):
        decoder.open_records(50, 0, 0, False, 0)


def test_records_are_immutable_comparable_and_can_be_pickled(variant: Any) -> None:
    make = variant.consume.ConsumerRecord
    record = make("t", 1, 2, 3, b"k", b"v", (("h", b"x"), ("h", None)), 1, 4)
    assert record == make("t", 1, 2, 3, b"k", b"v", (("h", b"x"), ("h", None)), 1, 4)
    assert record != make("t", 1, 2, 3, b"k", b"other")
    assert record != "t"
    assert (record.headers, record.header("h"), record.header("none", b"d")) == ((("h", b"x"), ("h", None)), None, b"d")
    assert hash(record) == hash(make("t", 1, 2))
    assert "offset=2" in repr(record)
    if variant.consume._COMPILED if hasattr(variant.consume, "_COMPILED") else True:
        assert pickle.loads(pickle.dumps(record)) == record


def test_records_of_bytes_are_no_work_for_the_collector(variants: Any) -> None:
    found: list[Any] = []
    decoder_of(variants[1], b"v").take(found, 1, None, None)
    assert not gc.is_tracked(found[0])
    decoder_of(variants[1], b"v").take(found, 1, None, lambda topic, headers, data: [data])
    assert gc.is_tracked(found[1])
    with pytest.raises(AttributeError):
        found[0].value = b"other"


@settings(max_examples=examples(200), deadline=None)
@given(batches=st.lists(rows(), min_size=1, max_size=4), limits=st.lists(st.integers(1, 12), min_size=1), data=st.data())
def test_batches_are_taken_one_by_one(variants: Any, batches: list[list[Record]], limits: list[int], data: Any) -> None:
    frame, first, offsets = bytearray(), 0, []
    for records in batches:
        moved = [Record(first + index, each.timestamp, each.key, each.value) for index, each in enumerate(records)]
        is_plain = data.draw(st.integers(0, 3)) > 0
        frame += build_batch(moved, codec=Codec.NONE if is_plain else Codec.GZIP)
        first += len(moved)
        offsets.append([each.offset for each in moved] if is_plain else None)
    plain = [offset for each in itertools.takewhile(lambda each: each is not None, offsets) for offset in each]
    for variant in variants:
        decoder = variant.consume.RecordDecoder(frame, "t", 0, 0)
        found: list[Any] = []
        for limit in itertools.cycle(limits):
            taken = decoder.take_plain(found, limit, None, None, True, False)
            assert taken <= limit
            if taken < limit:
                break
        assert [each.offset for each in found] == plain
        assert decoder.left == 0
        assert (decoder.at == len(frame)) == (None not in offsets)


def test_a_poisoned_record_in_a_later_batch_is_raised_by_the_next_call(variant: Any) -> None:
    frame = build_batch([Record(0, 0, None, b"0")]) + build_batch([Record(1, 0, None, b"1"), Record(2, 0, None, b"x")])
    decoder = variant.consume.RecordDecoder(frame, "t", 0, 0)
    found: list[Any] = []

    def number(topic: str, headers: Any, value: bytes) -> int:
        return int(value)

    assert decoder.take_plain(found, 9, None, number, True, False) == 2
    with pytest.raises(ValueError, match="x"):
        decoder.take_plain(found, 9, None, number, True, False)
    assert (decoder.failed.offset, decoder.next_offset, decoder.left) == (2, 2, 1)
    decoder.go_on(len(frame), 3)
    assert decoder.take_plain(found, 9, None, number, True, False) == 0
