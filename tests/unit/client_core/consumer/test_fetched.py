"""Fetched records: what is handed out of an answer, in which portions, and where the position is after it."""

from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.machines.consumer_cluster import FakePartition, place

from ottla.client_core.consumer.fetched import Fetched, end_of_batches
from ottla.client_core.consumer.subscription import PartitionState, Position
from ottla.errors import CorruptBatchError, DeserializationError
from ottla.records.compression import Codec


def fetched(data: bytes | bytearray, offset: int = 0, **options: Any) -> Fetched:
    """What a partition at `offset` gets with an answer of `data`."""
    state = PartitionState(place(0))
    state.jump(Position(offset))
    end, _, _ = end_of_batches(memoryview(data))
    state.received_bytes = end
    return Fetched(state, memoryview(data), end, offset, options.pop("aborted", None), **options)


def take(source: Fetched, limit: int = 100, *deserializers: Any) -> list[tuple[int, Any]]:
    records: list[Any] = []
    assert source.take(records, limit, *deserializers) == len(records)
    return [(record.offset, record.value) for record in records]


def damaged(batch: bytearray) -> bytearray:
    batch[17] ^= 0xFF  # its checksum
    return batch


def test_records_come_in_portions_and_the_position_follows() -> None:
    data = make_batch(b"a", b"b", b"c", leader_epoch=4) + make_batch(b"d", base_offset=3, leader_epoch=5, codec=Codec.GZIP)
    source = fetched(data)
    assert take(source, 2) == [(0, b"a"), (1, b"b")]
    assert (source.state.position, source.is_done) == (Position(2, 4), False)
    assert take(source) == [(2, b"c"), (3, b"d")]
    assert (source.state.position, source.is_done) == (Position(4, 5), True)
    assert source.state.buffered_bytes == 0


def test_records_before_the_position_are_left_out() -> None:
    for codec in (Codec.NONE, Codec.GZIP):
        source = fetched(make_batch(b"a", b"b", b"c", base_offset=10, codec=codec), offset=11)
        assert take(source) == [(11, b"b"), (12, b"c")]


def test_a_stale_answer_does_not_move_the_position() -> None:
    source = fetched(make_batch(b"a", b"b"))
    source.state.jump(Position(70))
    assert source.is_stale
    take(source)
    assert (source.state.position, source.state.buffered_bytes) == (Position(70), 0)


@pytest.mark.parametrize("is_committed_only", [False, True])
def test_aborted_records_come_only_without_read_committed(is_committed_only: bool) -> None:
    log = FakePartition()
    log.append_transaction([b"aborted"], 1, is_commit=False)
    log.append_transaction([b"committed"], 1, is_commit=True)
    log.append([b"plain"])
    log.append_transaction([b"other"], 2, is_commit=False)
    aborted = [(first, producer_id) for first, _, producer_id in log.aborted]
    source = fetched(log.read(0, 10_000), aborted=aborted if is_committed_only else None)
    seen = [(0, b"aborted"), (2, b"committed"), (4, b"plain"), (5, b"other")]
    assert take(source) == (seen[1:3] if is_committed_only else seen)
    position = source.state.position
    assert position is not None
    assert position.offset == 7  # behind the last marker, which is never handed out


def test_the_marker_of_an_earlier_abort_ends_it() -> None:
    log = FakePartition()
    log.append_transaction([b"aborted"], 1, is_commit=False)
    log.append_transaction([b"committed"], 1, is_commit=True)
    source = fetched(log.read(1, 10_000), offset=1, aborted=[(0, 1)])
    assert take(source) == [(2, b"committed")]


def test_a_damaged_batch_raises_after_what_comes_before_it() -> None:
    source = fetched(make_batch(b"a") + damaged(make_batch(b"b", b"c", base_offset=1)) + make_batch(b"d", base_offset=3))
    assert take(source) == [(0, b"a")]
    for _ in range(2):
        with pytest.raises(CorruptBatchError, match="t-0 is damaged at offset 1") as raised:
            take(source)
        assert (raised.value.offset, raised.value.next_offset) == (1, 3)
    position = source.state.position
    assert position is not None
    assert position.offset == 1


def test_damage_is_not_looked_for_without_check_crcs() -> None:
    for codec in (Codec.NONE, Codec.GZIP):
        source = fetched(damaged(make_batch(b"a", codec=codec)), check_crcs=False)
        assert take(source) == [(0, b"a")]


def test_a_poisoned_record_raises_with_its_raw_form_at_every_take() -> None:
    def read(topic: str, headers: Any, data: bytes) -> int:
        return int(data)

    source = fetched(make_batch(b"1", b"x", b"3", key=b"key"))
    assert take(source, 100, None, read) == [(0, 1)]
    for _ in range(2):
        with pytest.raises(DeserializationError, match="the value of the record at offset 1 of t-0") as raised:
            take(source, 100, None, read)
        error = raised.value
        assert (error.offset, error.is_key, error.raw_key, error.raw_value) == (1, False, b"key", b"x")
    position = source.state.position
    assert position is not None
    assert position.offset == 1


def test_views_hold_what_is_left_and_their_first_offset() -> None:
    log = FakePartition()
    log.append([b"a", b"b"])
    log.append_transaction([b"aborted"], 1, is_commit=False)
    log.append([b"c"])
    source = fetched(log.read(0, 10_000), aborted=[(2, 1)])
    take(source, 1)
    first, views = source.take_views()
    assert (first, [view.base_offset for view in views]) == (1, [0, 4])
    assert source.is_done
    assert source.state.position == Position(5, 0)


def test_a_piece_of_a_batch_at_the_end_is_left_out() -> None:
    whole, cut = make_batch(b"a", b"b", leader_epoch=4), make_batch(b"c", base_offset=2)[:-1]
    assert end_of_batches(memoryview(whole + cut)) == (len(whole), 2, 4)
    assert end_of_batches(memoryview(cut)) == (0, -1, -1)
    assert take(fetched(whole + cut)) == [(0, b"a"), (1, b"b")]
