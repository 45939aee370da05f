"""Where a follower continues, diverges or needs a snapshot."""

import pytest
from tests.support.raft.memory_log import Entry, MemoryLog

from ottla.raft.log_view import Diverging, check_position, covers, truncation_offset
from ottla.raft.snapshots import SnapshotId


def log_of(*epochs: int) -> MemoryLog:
    log = MemoryLog()
    log.entries = [Entry(epoch, number) for number, epoch in enumerate(epochs)]
    return log


@pytest.mark.parametrize(
    ("offset", "epoch", "found"),
    [
        (0, 0, None),
        (2, 1, None),
        (4, 3, None),
        (5, 3, Diverging(3, 4)),
        (3, 2, Diverging(1, 2)),
        (3, 1, Diverging(1, 2)),
        (9, 9, Diverging(3, 4)),
    ],
)
def test_positions(offset: int, epoch: int, found: Diverging | None) -> None:
    assert check_position(log_of(1, 1, 3, 3), offset, epoch) == found


def test_followers_before_the_log_start_need_the_snapshot() -> None:
    log = log_of(1, 1, 3, 3)
    snapshot = SnapshotId(2, 1)
    log.snapshots[snapshot] = []
    log.trim(snapshot)
    assert check_position(log, 0, 0) == snapshot
    assert check_position(log, 1, 1) == snapshot
    assert check_position(log, 2, 1) is None
    assert check_position(log, 2, 2) == snapshot
    assert check_position(log, 4, 3) is None


@pytest.mark.parametrize(
    ("diverging", "offset"), [(Diverging(1, 1), 1), (Diverging(1, 9), 2), (Diverging(2, 3), 2), (Diverging(0, 3), 3)]
)
def test_truncation(diverging: Diverging, offset: int) -> None:
    assert truncation_offset(log_of(1, 1, 3, 3), diverging) == offset


@pytest.mark.parametrize(
    ("snapshot", "is_covered"),
    [((2, 1), True), ((1, 1), True), ((4, 3), True), ((5, 3), False), ((4, 2), False), ((3, 1), False), ((4, 4), False)],
)
def test_log_covers_a_snapshot_if_it_has_the_last_record_of_it(snapshot: tuple[int, int], is_covered: bool) -> None:
    assert covers(log_of(1, 1, 3, 3), SnapshotId(*snapshot)) is is_covered


def test_log_covers_the_snapshots_before_its_start() -> None:
    log = log_of(1, 1, 3, 3)
    log.snapshots[SnapshotId(3, 3)] = []
    log.trim(SnapshotId(3, 3))
    assert covers(log, SnapshotId(2, 1))
    assert covers(log, SnapshotId(3, 3))
    assert not covers(log, SnapshotId(5, 3))
