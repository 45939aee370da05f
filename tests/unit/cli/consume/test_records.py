"""Decoding of fetched batches: cut ranges, markers, aborted transactions."""

import pytest

from ottla.cli.consume.records import next_offset, read_batches, whole_batches
from ottla.errors import CorruptRecords
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.wire.messages.fetch import AbortedTransaction


def batch(first: int, count: int, producer_id: int = -1, codec: Codec = Codec.NONE, **more: object) -> bytes:
    records = [Record(offset, 1000 + offset, None, b"%d" % offset) for offset in range(first, first + count)]
    identity = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0} if producer_id >= 0 else {}
    return bytes(build_batch(records, leader_epoch=3, codec=codec, transactional=producer_id >= 0, **identity, **more))  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, is_commit: bool) -> bytes:
    made = build_end_marker(
        is_commit=is_commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1, base_offset=offset
    )
    return bytes(made)


def offsets(data: bytes, start: int = 0, aborted: list[AbortedTransaction] | None = None) -> list[int]:
    views = list(whole_batches(data))
    return [record.offset for each in read_batches(views, start, aborted) for record in each.records]


def test_records_before_the_requested_offset_are_left_out() -> None:
    data = batch(0, 5) + batch(5, 3, codec=Codec.ZSTD)
    assert offsets(data) == list(range(8))
    assert offsets(data, 3) == [3, 4, 5, 6, 7]
    assert offsets(data, 6) == [6, 7]


@pytest.mark.parametrize("cut", [1, 20, 61, 70])
def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch(cut: int) -> None:
    whole = batch(0, 5)
    data = whole + batch(5, 3)[:cut]
    assert offsets(data) == [0, 1, 2, 3, 4]
    assert next_offset(list(whole_batches(data)), 0) == 5
    assert next_offset([], 7) == 7


def test_next_offset_skips_offsets_removed_by_compaction() -> None:
    data = bytes(build_batch([Record(2, 1, None, b"x")], base_offset=0, last_offset_delta=9))
    assert next_offset(list(whole_batches(data)), 0) == 10


def test_damaged_batch_is_refused() -> None:
    data = bytearray(batch(0, 5))
    data[-1] ^= 1
    with pytest.raises(CorruptRecords, match="CRC"):
        offsets(bytes(data))


def test_records_carry_the_fields_of_their_batch() -> None:
    (plain,) = read_batches(list(whole_batches(batch(0, 1))), 0, None)
    assert (plain.timestamp_type, plain.leader_epoch) == ("CreateTime", 3)
    (stamped,) = read_batches(list(whole_batches(batch(0, 1, append_time_ms=77))), 0, None)
    assert (stamped.timestamp_type, stamped.records[0].timestamp) == ("LogAppendTime", 77)


def test_records_of_aborted_transactions_are_left_out() -> None:
    data = (
        batch(0, 2, producer_id=7)  # aborted
        + batch(2, 2, producer_id=8)  # committed
        + batch(4, 1)  # no transaction
        + marker(5, 7, is_commit=False)
        + batch(6, 1, producer_id=7)  # the same producer's next, committed
        + marker(7, 8, is_commit=True)
        + marker(8, 7, is_commit=True)
        + batch(9, 1, producer_id=7)  # and one more, aborted
        + marker(10, 7, is_commit=False)
    )
    aborted = [AbortedTransaction(producer_id=7, first_offset=9), AbortedTransaction(producer_id=7, first_offset=0)]
    assert offsets(data, 0, aborted) == [2, 3, 4, 6]
    assert offsets(data, 0, None) == [0, 1, 2, 3, 4, 6, 9], "markers are left out with read_uncommitted, too"
