"""Walks in pieces and scans, in both variants of the kernel."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecords
from ottla.records.builder import build_batch
from ottla.records.kernels import load_variant
from ottla.records.layout import HEADER_SIZE
from ottla.records.record import Record

VARIANTS = [found for found in (load_variant("kernel_columns", pure=pure) for pure in (True, False)) if found is not None]
BASE = 1_000
LOWEST = -(1 << 63)

records = st.lists(
    st.tuples(st.integers(0, 50), st.none() | st.binary(max_size=3), st.lists(st.just(("h", b"v")), max_size=2)), max_size=12
)


def payload(made: list[tuple[int, bytes | None, list[Any]]]) -> bytes:
    rows = [Record(index, BASE + time, key, b"v", tuple(headers)) for index, (time, key, headers) in enumerate(made)]
    return bytes(build_batch(rows)[HEADER_SIZE:]) if rows else b""


def found(walk: Any) -> tuple[int, ...]:
    return (walk.min_timestamp, walk.max_timestamp, walk.displaced, walk.keyless, walk.key_bytes, walk.header_count)


@pytest.mark.parametrize("kernel", VARIANTS)
@given(made=records, piece=st.integers(1, 5))
def test_walk_in_pieces_finds_what_one_walk_finds(kernel: ModuleType, made: list[Any], piece: int) -> None:
    data, base = payload(made), made[0][0] + BASE if made else 0
    whole, pieces = kernel.RecordWalk(), kernel.RecordWalk()
    whole.walk(data, 0, len(data), len(made), base)
    pieces.begin(data, 0, len(data), len(made))
    for index in range(piece, len(made), piece):
        pieces.go_on(data, len(data), index, base)
    pieces.go_on(data, len(data), len(made), base)
    assert found(pieces) == found(whole)


@pytest.mark.parametrize("kernel", VARIANTS)
@given(made=records, time=st.integers(0, 60), first=st.integers(0, 12), piece=st.integers(1, 5))
def test_scan_finds_the_first_record_by_time(kernel: ModuleType, made: list[Any], time: int, first: int, piece: int) -> None:
    data, base = payload(made), made[0][0] + BASE if made else 0
    expected = next((index for index, (at, _, _) in enumerate(made) if at >= time and index >= first), None)
    scan, result = kernel.RecordScan(), None
    while scan.index + 1 < len(made):
        if scan.find(data, len(made), base, BASE + time, first, piece):
            result = scan.index
            assert (scan.timestamp, scan.offset_delta) == (BASE + made[result][0], result)
            assert scan.is_keyless == (made[result][1] is None)
            break
    assert result == expected


@pytest.mark.parametrize("kernel", VARIANTS)
def test_damage_is_found_where_a_scan_comes_to_it(kernel: ModuleType) -> None:
    data = payload([(0, b"k", []), (1, b"k", [])])
    scan = kernel.RecordScan()
    assert scan.find(data[:-3], 2, BASE, LOWEST, LOWEST, 1)
    with pytest.raises(CorruptRecords):
        scan.find(data[:-3], 2, BASE, LOWEST, LOWEST, 1)


@pytest.mark.parametrize("kernel", VARIANTS)
def test_a_walk_does_not_go_on_with_other_records(kernel: ModuleType) -> None:
    data = payload([(0, b"k", []), (1, b"k", [])])
    walk = kernel.RecordWalk()
    walk.begin(data, 0, len(data), 2)
    with pytest.raises(CorruptRecords):
        walk.go_on(data, len(data), 3, BASE)
    with pytest.raises(CorruptRecords):
        walk.go_on(data[:-1], len(data), 2, BASE)
