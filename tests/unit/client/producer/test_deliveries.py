"""What became of many records: results by number, the first failure, ranges of offsets."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.deliveries import Deliveries, Stamps, StoredRange
from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import NetworkError
from ottla.records.compression import Codec
from ottla.records.kernels import NO_HEADERS, BufferMemory, Places


def batch_of(partition: int) -> ProducerBatch:
    return ProducerBatch(("t", partition), BufferMemory(10_000), 500, 5_000, 0, None)


def sent(*batches: ProducerBatch) -> Deliveries:
    """One record after the other, each added to the given batch."""
    places, stamps = Places(), Stamps()
    stamps.add(0, 1)
    for batch in batches:
        places.add(batch, batch.append(1, None, b"v", NO_HEADERS, None))
    return Deliveries(places, stamps)


def test_a_sequence_of_handles() -> None:
    one, other = batch_of(0), batch_of(1)
    deliveries = sent(one, one, other)
    assert len(deliveries) == 3
    assert deliveries.batches() == [one, other]
    assert [handle.index for handle in deliveries] == [0, 1, 0]
    assert deliveries[-1].batch is other
    assert len(deliveries[:2]) == 2
    assert deliveries[:2].batches() == [one]
    assert [handle.index for handle in deliveries[::-1]] == [0, 1, 0]
    assert repr(deliveries) == "Deliveries(3 records)"
    assert not deliveries.done()
    with pytest.raises(IndexError):
        deliveries[3]


def test_results_of_all_records() -> None:
    one, other = batch_of(0), batch_of(1)
    deliveries = sent(one, one, other)
    one.complete(10, -1)
    other.complete(5, 77)
    assert deliveries.done()
    assert deliveries.wait() == 3
    assert deliveries.first_failure() is None
    assert [(metadata.offset, metadata.timestamp) for metadata in deliveries.result()] == [(10, 1), (11, 1), (5, 77)]

    async def run() -> list[int]:
        return [metadata.offset for metadata in await deliveries]

    assert asyncio.run(run()) == [10, 11, 5]


def test_the_first_error_is_raised() -> None:
    one, other = batch_of(0), batch_of(1)
    deliveries = sent(one, other, one)
    one.complete(10, -1)
    error = NetworkError("gone")
    other.fail(error)
    for call in (deliveries.wait, deliveries.result, deliveries.ranges):
        with pytest.raises(NetworkError, match="gone"):
            call()
    assert deliveries.first_failure() == (1, error)
    assert deliveries[1:].first_failure() == (0, error)
    assert deliveries[2:].first_failure() is None


def test_failures_in_a_part_of_a_split_batch_are_found() -> None:
    batch = batch_of(0)
    deliveries = sent(*[batch] * 6)
    batch.seal(Codec.NONE, None, False)
    parts = batch.split(61 + 8 * 3)
    parts[0].complete(7, -1)
    for part in parts[1:]:
        part.fail(NetworkError("gone"))
    batch.finish()
    failure = deliveries.first_failure()
    assert failure is not None
    assert failure[0] == parts[0].count
    assert deliveries[: parts[0].count].ranges() == [StoredRange("t", 0, 7, parts[0].count)]


def test_ranges_of_a_split_batch() -> None:
    batch = batch_of(0)
    deliveries = sent(*[batch] * 6)
    batch.seal(Codec.NONE, None, False)
    for offset, part in zip((7, 50, 60, 70), batch.split(61 + 8 * 4), strict=False):
        part.complete(offset, -1)
    batch.finish()
    expected = [StoredRange("t", 0, offset, part.count) for offset, (_, part) in zip((7, 50, 60), batch.parts, strict=False)]
    assert deliveries.ranges() == expected


@given(st.lists(st.integers(0, 2), max_size=40), st.slices(40))
def test_ranges_hold_exactly_the_offsets_of_the_records(numbers: list[int], part: slice) -> None:
    batches = [batch_of(partition) for partition in range(3)]
    deliveries = sent(*(batches[number] for number in numbers))
    for number, batch in enumerate(batches):
        batch.complete(100 * number, -1)
    chosen = deliveries[part]
    expected = sorted((metadata.partition, metadata.offset) for metadata in chosen.result())
    ranges = chosen.ranges()
    found = [(each.partition, each.offset + number) for each in ranges for number in range(each.records)]
    assert sorted(found) == expected


def test_unknown_offsets_are_ranges_too() -> None:
    batch = batch_of(0)
    deliveries = sent(batch, batch)
    batch.complete(-1, -1)
    assert deliveries.ranges() == [StoredRange("t", 0, -1, 2)]


def test_timestamps_by_record() -> None:
    stamps = Stamps()
    stamps.add(0, 5)
    stamps.add(2, lambda number: 100 + number)
    stamps.add(4, 9)
    assert [stamps.get(record) for record in range(6)] == [5, 5, 100, 101, 9, 9]
