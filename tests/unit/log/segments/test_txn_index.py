"""The transaction index: entries, lookups against a plain filter, truncation, damage."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.env import OpenMode
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.txn_index import ENTRY_SIZE, AbortedTxn, TxnIndex
from ottla.sim.disk import MemoryDisk

PATH = "/00000000000000000100.txnindex"
BASE = 100


def new_index(disk: MemoryDisk) -> TxnIndex:
    return TxnIndex(disk, PATH, BASE)


def test_no_file_before_the_first_entry() -> None:
    disk = MemoryDisk()
    index = new_index(disk)
    assert index.all() == []
    assert index.collect(0, 1000, []) is False
    assert not disk.exists(PATH)


def test_bytes_of_an_entry() -> None:
    disk = MemoryDisk()
    index = new_index(disk)
    index.append(AbortedTxn(7, 90, 110, 95))
    assert disk.read_file(PATH) == struct.pack(">hqqqq", 0, 7, 90, 110, 95)
    index.close()
    assert new_index(disk).all() == [(7, 90, 110, 95)]


@given(
    lasts=st.lists(st.integers(100, 400), unique=True, max_size=30),
    lengths=st.lists(st.integers(1, 90), min_size=30, max_size=30),
    start=st.integers(0, 450),
    width=st.integers(1, 200),
)
def test_collect_against_a_filter(lasts: list[int], lengths: list[int], start: int, width: int) -> None:
    disk = MemoryDisk()
    index = new_index(disk)
    txns = [
        AbortedTxn(number, last - length, last, last + 1)
        for number, (last, length) in enumerate(zip(sorted(lasts), lengths, strict=False))
    ]
    for txn in txns:
        index.append(txn)
    found: list[AbortedTxn] = []
    complete = index.collect(start, start + width, found)
    wanted = [txn for txn in txns if txn.last_offset >= start and txn.first_offset < start + width]
    beyond = [txn for txn in txns if txn.last_stable_offset >= start + width]
    if not beyond:
        assert not complete
        assert found == wanted
    else:
        assert complete
        assert found == [txn for txn in wanted if txn.last_offset <= beyond[0].last_offset]


def test_truncation_drops_markers_from_the_offset_on() -> None:
    disk = MemoryDisk()
    index = new_index(disk)
    for last in (110, 120, 130):
        index.append(AbortedTxn(1, last - 5, last, last + 1))
    index.truncate_to(120)
    assert [txn.last_offset for txn in index.all()] == [110]
    assert len(disk.read_file(PATH)) == ENTRY_SIZE
    index.append(AbortedTxn(2, 118, 125, 126))
    index.close()
    assert [txn.last_offset for txn in new_index(disk).all()] == [110, 125]


def test_reset_empties_what_was_never_read() -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(b"garbage")
    index = new_index(disk)
    index.reset()
    assert index.all() == []
    assert disk.read_file(PATH) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"short",
        struct.pack(">hqqqq", 1, 7, 90, 110, 95),
        struct.pack(">hqqqq", 0, 7, 90, 99, 95),
        struct.pack(">hqqqq", 0, 7, 111, 110, 95),
        struct.pack(">hqqqq", 0, -7, 90, 110, 95),
        struct.pack(">hqqqq", 0, 7, 90, 110, 95) * 2,
    ],
)
def test_what_cannot_be_an_index_is_refused(data: bytes) -> None:
    disk = MemoryDisk()
    disk.open(PATH, OpenMode.CREATE).append(data)
    with pytest.raises(CorruptIndex, match=PATH):
        new_index(disk).all()
