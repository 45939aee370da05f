"""The offset index: lookups against a plain list, blocks and pages, padding, truncation, damage."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.env import OpenMode
from ottla.log.segments.offset_index import OffsetIndex, OffsetPosition
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.sim.disk import MemoryDisk

PATH = "/00000000000000000100.index"
BASE = 100


def new_index(disk: MemoryDisk, size_max_bytes: int = 10 << 20) -> OffsetIndex:
    return OffsetIndex(disk, PATH, BASE, size_max_bytes)


def filled(disk: MemoryDisk, count: int) -> OffsetIndex:
    index = new_index(disk)
    index.reset()
    for number in range(count):
        index.append(BASE + 10 * number + 9, 4096 * (number + 1))
    return index


def expected(entries: list[tuple[int, int]], offset: int) -> tuple[int, int]:
    return max((entry for entry in entries if entry[0] <= offset), default=(BASE, 0))


@pytest.mark.parametrize("count", [0, 1, 2, 511, 512, 513, 1024, 2047, 2048, 2049, 5000])
def test_lookup_finds_the_entry_at_or_below(count: int) -> None:
    disk = MemoryDisk()
    index = filled(disk, count)
    entries = [(BASE + 10 * number + 9, 4096 * (number + 1)) for number in range(count)]
    offsets = [BASE, BASE + 8, BASE + 9, BASE + 10, BASE + 10 * count - 1, BASE + 10 * count + 50]
    offsets += [BASE + 10 * count * part // 7 for part in range(7)]
    for offset in offsets:
        assert index.lookup(offset) == expected(entries, offset), offset
    index.close()
    again = new_index(disk)
    for offset in offsets:
        assert again.lookup(offset) == expected(entries, offset), offset


@pytest.mark.parametrize("reopen", [False, True])
def test_the_entry_after_is_given_unless_it_is_on_another_page(reopen: bool) -> None:
    disk = MemoryDisk()
    index = filled(disk, 5000)
    if reopen:
        index.close()
        index = new_index(disk)
    for number in (0, 1, 510, 511, 512, 3000, 4998, 4999):
        found, after = index.around(BASE + 10 * number + 9)
        assert found == (BASE + 10 * number + 9, 4096 * (number + 1))
        if after is not None:
            assert after == (BASE + 10 * number + 19, 4096 * (number + 2))
        assert (after is None) == (number in (511, 4999))
    assert index.around(BASE) == ((BASE, 0), None)


@settings(max_examples=examples(60), deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9000)), max_size=1500),
    probes=st.lists(st.integers(0, 40_000), max_size=20),
    cut=st.integers(0, 40_000),
    reopen=st.booleans(),
)
def test_against_a_list(steps: list[tuple[int, int]], probes: list[int], cut: int, reopen: bool) -> None:
    disk = MemoryDisk()
    index = new_index(disk)
    entries: list[tuple[int, int]] = []
    offset, position = BASE, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.open()
        index.append(offset, position)
        entries.append((offset, position))
    if reopen:
        index.close()
        index = new_index(disk)
    for probe in probes:
        assert index.lookup(BASE + probe) == expected(entries, BASE + probe)
        above = [entry[0] for entry in entries if entry[1] >= probe]
        assert index.offset_at_or_after(probe) == (above[0] if above else None)
    index.truncate_to(BASE + cut)
    entries = [entry for entry in entries if entry[0] < BASE + cut]
    assert index.count == len(entries)
    assert index.last_offset == (entries[-1][0] if entries else BASE)
    index.append(BASE + 50_000, 1 << 30)
    assert index.lookup(BASE + 60_000) == (BASE + 50_000, 1 << 30)
    for probe in probes:
        assert index.lookup(BASE + probe) == expected(entries, BASE + probe)


def test_bytes_are_big_endian_pairs() -> None:
    disk = MemoryDisk()
    filled(disk, 2).close()
    assert disk.read_file(PATH) == struct.pack(">iiii", 9, 4096, 19, 8192)


def test_zero_padding_is_skipped_and_cut_off() -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(struct.pack(">iiii", 9, 4096, 19, 8192), bytes(8 * 1000))
    index = new_index(disk)
    assert index.lookup(BASE + 500) == OffsetPosition(BASE + 19, 8192)
    index.append(BASE + 29, 12288)
    index.close()
    assert disk.read_file(PATH) == struct.pack(">iiiiii", 9, 4096, 19, 8192, 29, 12288)


def test_nothing_but_padding_is_an_empty_index() -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(bytes(8 * 1000))
    index = new_index(disk)
    assert index.lookup(BASE + 5) == (BASE, 0)
    index.close()
    assert disk.read_file(PATH) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 7,
        struct.pack(">ii", 9, 4096) + b"x",
        struct.pack(">iiii", 19, 8192, 9, 4096),
        struct.pack(">iiii", -5, 10, 9, 4096),
        struct.pack(">iiii", 5, -10, 9, 4096),
    ],
)
def test_what_cannot_be_an_index_is_refused(data: bytes) -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(data)
    with pytest.raises(CorruptIndex, match=PATH):
        new_index(disk).lookup(BASE)


def test_is_full_at_the_size_set() -> None:
    disk = MemoryDisk()
    index = new_index(disk, size_max_bytes=30)
    index.reset()
    for number in range(3):
        assert not index.is_full
        index.append(BASE + number, number + 1)
    assert index.is_full


def test_entries_wait_in_memory_until_they_make_a_block() -> None:
    disk = MemoryDisk()
    index = filled(disk, 511)
    assert disk.read_file(PATH) == b""
    index.append(BASE + 10_000, 1 << 30)
    assert len(disk.read_file(PATH)) == 512 * 8
