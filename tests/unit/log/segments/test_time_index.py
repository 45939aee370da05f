"""The time index: entries only for larger timestamps, lookups by time, truncation by offset."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.env import OpenMode
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.time_index import TimeIndex
from ottla.sim.disk import MemoryDisk

PATH = "/00000000000000000100.timeindex"
BASE = 100


def new_index(disk: MemoryDisk, size_max_bytes: int = 10 << 20) -> TimeIndex:
    return TimeIndex(disk, PATH, BASE, size_max_bytes)


@settings(max_examples=examples(60), deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(-20, 100), st.integers(1, 50)), max_size=1200),
    probes=st.lists(st.integers(-5, 60_000), max_size=20),
    cut=st.integers(0, 40_000),
    reopen=st.booleans(),
)
def test_against_a_list(steps: list[tuple[int, int]], probes: list[int], cut: int, reopen: bool) -> None:
    disk = MemoryDisk()
    index = new_index(disk)
    index.reset()
    entries: list[tuple[int, int]] = []
    timestamp, offset = 1000, BASE
    for time_step, offset_step in steps:
        timestamp, offset = timestamp + time_step, offset + offset_step
        index.append_if_larger(timestamp, offset)
        if timestamp > max((entry[0] for entry in entries[-1:]), default=-1):
            entries.append((timestamp, offset))
    if reopen:
        index.close()
        index = new_index(disk)
    for probe in probes:
        assert index.lookup(probe) == max((entry for entry in entries if entry[0] <= probe), default=(-1, BASE))
    index.truncate_to(BASE + cut)
    entries = [entry for entry in entries if entry[1] < BASE + cut]
    assert index.count == len(entries)
    assert index.last_entry == (entries[-1] if entries else (-1, BASE))


def test_bytes_are_timestamp_and_relative_offset() -> None:
    disk = MemoryDisk()
    index = new_index(disk)
    index.reset()
    index.append_if_larger(1_700_000_000_000, BASE + 7)
    index.append_if_larger(1_700_000_000_000, BASE + 9)
    index.append_if_larger(1_600_000_000_000, BASE + 11)
    index.close()
    assert disk.read_file(PATH) == struct.pack(">qi", 1_700_000_000_000, 7)


def test_one_entry_of_zeros_is_a_record_at_time_zero() -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(bytes(12))
    assert new_index(disk).last_entry == (0, BASE)


def test_more_zeros_are_padding() -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(struct.pack(">qi", 5, 3), bytes(12 * 50))
    index = new_index(disk)
    assert index.last_entry == (5, BASE + 3)
    assert index.count == 1


def test_keeps_a_place_for_the_entry_of_the_roll() -> None:
    disk = MemoryDisk()
    index = new_index(disk, size_max_bytes=36)
    index.reset()
    for number in range(2):
        assert not index.is_full
        index.append_if_larger(number, BASE + number)
    assert index.is_full


@pytest.mark.parametrize(
    "data", [b"1234567", struct.pack(">qiqi", 10, 5, 9, 6), struct.pack(">qiqi", 10, 5, 11, 4), struct.pack(">qi", 1, -4)]
)
def test_what_cannot_be_an_index_is_refused(data: bytes) -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(data)
    with pytest.raises(CorruptIndex, match=PATH):
        _ = new_index(disk).last_entry
