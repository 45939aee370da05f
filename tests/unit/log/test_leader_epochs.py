"""Leader epochs: Apache's answers, the invariant, and when the file is written."""

import asyncio
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.epoch_script import run_epoch_script

from ottla.errors import BrokenInvariant, CorruptFile
from ottla.log.leader_epochs import LeaderEpochs
from ottla.sim.disk import MemoryDisk

SCENARIOS = (Path(__file__).parent / "data" / "epoch_scenarios.txt").read_text().splitlines()


def epochs_on_disk() -> tuple[MemoryDisk, LeaderEpochs]:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    return disk, LeaderEpochs(disk, "/t-0")


def test_answers_are_apaches() -> None:
    """The file holds scripts with the answers of Apache Kafka 4.3.0 (tests/support/java/LeaderEpochOracle.java)."""
    assert run_epoch_script(line.split(" => ")[0] for line in SCENARIOS) == SCENARIOS


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30))))
def test_epochs_and_offsets_always_rise(pairs: list[tuple[int, int]]) -> None:
    _, epochs = epochs_on_disk()
    for epoch, offset in pairs:
        epochs.assign(epoch, offset)
        entries = epochs.entries
        assert epochs.latest == epoch
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(entries))
        assert epochs.latest_entry == entries[-1]
        assert epochs.earliest_entry == entries[0]


def test_a_batch_of_an_earlier_epoch_removes_later_entries_only() -> None:
    """A follower that led epoch 3 without records gets batches of epoch 2: they belong to the epoch 2 that it has."""
    _, epochs = epochs_on_disk()
    for epoch, offset in ((1, 0), (2, 50), (3, 95)):
        epochs.assign(epoch, offset)
    asyncio.run(epochs.flush())
    assert not epochs.assign(2, 95)
    assert epochs.entries == [(1, 0), (2, 50)]
    assert epochs.is_dirty
    assert epochs.end_offset_for(1, 96) == (1, 50)
    assert epochs.assign(2, 40)
    assert epochs.entries == [(1, 0), (2, 40)]


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_invalid_epochs_break_an_invariant(epoch: int, offset: int) -> None:
    _, epochs = epochs_on_disk()
    with pytest.raises(BrokenInvariant, match="leader-epoch-checkpoint"):
        epochs.assign(epoch, offset)


def test_nothing_is_known_of_an_empty_log() -> None:
    _, epochs = epochs_on_disk()
    assert (epochs.latest, epochs.latest_entry, epochs.earliest_entry) == (None, None, None)
    assert epochs.end_offset_for(3, 10) == (-1, -1)


def test_flush_writes_once_and_only_what_changed() -> None:
    disk, epochs = epochs_on_disk()
    asyncio.run(epochs.flush())
    assert not disk.exists(epochs.path)
    assert epochs.assign(0, 0)
    assert epochs.is_dirty
    asyncio.run(epochs.flush())
    assert not epochs.is_dirty
    assert disk.read_file(epochs.path) == b"0\n1\n0 0\n"
    assert not epochs.assign(0, 50)
    assert not epochs.is_dirty


def test_epochs_at_or_past_the_end_need_not_be_in_the_file() -> None:
    _, epochs = epochs_on_disk()
    epochs.assign(0, 0)
    assert not epochs.is_dirty_below(0)
    assert epochs.is_dirty_below(1)
    asyncio.run(epochs.flush())
    epochs.assign(3, 10)
    assert not epochs.is_dirty_below(10)
    assert epochs.is_dirty_below(11)
    epochs.truncate_from_end(0)
    assert epochs.is_dirty_below(5)  # the file has an epoch that is gone


def test_overlapping_flushes_leave_the_newest() -> None:
    disk, epochs = epochs_on_disk()

    async def both() -> None:
        epochs.assign(0, 0)
        first = asyncio.ensure_future(epochs.flush())
        await asyncio.sleep(0)
        epochs.assign(1, 5)
        await asyncio.gather(first, epochs.flush(), epochs.flush())

    asyncio.run(both())
    assert LeaderEpochs.load(disk, "/t-0").entries == [(0, 0), (1, 5)]
    assert not epochs.is_dirty


def test_load_reads_what_flush_wrote_and_is_clean() -> None:
    disk, epochs = epochs_on_disk()
    for epoch, offset in ((0, 0), (2, 10), (5, 11)):
        epochs.assign(epoch, offset)
    asyncio.run(epochs.flush())
    loaded = LeaderEpochs.load(disk, "/t-0")
    assert loaded.entries == epochs.entries
    assert not loaded.is_dirty


def test_load_without_a_file_is_empty_and_damage_raises() -> None:
    disk, _ = epochs_on_disk()
    assert LeaderEpochs.load(disk, "/t-0").entries == []
    asyncio.run(disk.replace_file("/t-0/leader-epoch-checkpoint", b"0\n1\n0\n"))
    with pytest.raises(CorruptFile, match="read from the log's batches at the next start"):
        LeaderEpochs.load(disk, "/t-0")


def test_clear_and_move() -> None:
    _, epochs = epochs_on_disk()
    epochs.assign(1, 1)
    asyncio.run(epochs.flush())
    epochs.clear()
    assert epochs.is_dirty
    epochs.move_to("/t-0.x-delete")
    assert epochs.path == "/t-0.x-delete/leader-epoch-checkpoint"
    assert epochs.entries == []
