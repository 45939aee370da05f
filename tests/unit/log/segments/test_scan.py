"""Scanning a log file: mutated bytes give typed errors with their position, never a loop or a wrong batch."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.logs.batches import make_batch, sized_batch

from ottla.env import File, OpenMode
from ottla.errors import CorruptFile, CorruptRecords
from ottla.log.segments.scan import BatchPlace, batch_at, checked_batches, find_offset, headers
from ottla.sim.disk import MemoryDisk

BATCHES = [
    make_batch(b"a", b"b", base_offset=10),
    sized_batch(5000, base_offset=12, count=3),
    make_batch(b"c", base_offset=20),
    sized_batch(300, base_offset=21),
    make_batch(b"d" * 50, base_offset=22),
]
WHOLE = b"".join(BATCHES)


def file_of(data: bytes) -> File:
    file = MemoryDisk().open("/0.log", OpenMode.CREATE)
    file.append(data)
    return file


def test_every_scan_finds_every_batch() -> None:
    file = file_of(WHOLE)
    places = [(position, view.base_offset, view.size) for position, view in headers(file, 0, file.size)]
    checked = [(position, view.base_offset, view.size) for position, view in checked_batches(file, 0, file.size)]
    assert places == checked
    assert [offset for _, offset, _ in places] == [10, 12, 20, 21, 22]
    for small in (61, 100, 4096):
        assert [position for position, _ in headers(file, 0, file.size, small)] == [position for position, _, _ in places]


def test_a_batch_is_read_where_one_begins_and_only_there() -> None:
    file, size = file_of(WHOLE), len(WHOLE)
    second, last = len(BATCHES[0]), size - len(BATCHES[-1])
    assert batch_at(file, second, size) == BatchPlace(12, 14, second, len(BATCHES[1]))
    assert batch_at(file, last, size) == BatchPlace(22, 22, last, len(BATCHES[-1]))
    assert batch_at(file, second + 1, size) is None
    assert batch_at(file, last, size - 1) is None, "the batch reaches past the end"
    assert batch_at(file, size - 10, size) is None
    assert batch_at(file, size + 10, size) is None


@pytest.mark.parametrize(("offset", "found"), [(0, 10), (11, 10), (12, 12), (14, 12), (15, 20), (22, 22)])
def test_the_first_batch_that_reaches_an_offset(offset: int, found: int) -> None:
    file = file_of(WHOLE)
    place = find_offset(file, offset, 0, file.size)
    assert place is not None
    assert place.base_offset == found
    assert find_offset(file, 23, 0, file.size) is None


@pytest.mark.parametrize("cut", [1, 30, 60, 61, 70, len(WHOLE) - 1])
def test_a_torn_end_is_named(cut: int) -> None:
    file = file_of(WHOLE[:cut])
    with pytest.raises(CorruptRecords) as torn:
        list(checked_batches(file, 0, file.size))
    assert 0 <= torn.value.position < cut
    with pytest.raises(CorruptFile):
        list(headers(file, 0, file.size))
    with pytest.raises(CorruptFile):
        find_offset(file, 22, 0, file.size)


@settings(max_examples=examples(300), deadline=None)
@given(
    flips=st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(1, 255)), min_size=1, max_size=3),
    cut=st.integers(0, len(WHOLE)),
    start=st.integers(0, len(WHOLE)),
    offset=st.integers(-5, 40),
)
def test_mutated_bytes_give_only_typed_errors(flips: list[tuple[int, int]], cut: int, start: int, offset: int) -> None:
    data = bytearray(WHOLE)
    for at, bits in flips:
        data[at] ^= bits
    file = file_of(bytes(data[:cut]))
    for walk in (headers, checked_batches):
        try:
            for position, view in walk(file, start, file.size):
                assert position + view.size <= cut
                if walk is checked_batches:
                    view.check()
        except (CorruptFile, CorruptRecords):
            pass
    try:
        place = find_offset(file, offset, min(start, cut), file.size)
        assert place is None or (place.last_offset >= offset and place.position + place.size <= cut)
    except CorruptFile:
        pass
