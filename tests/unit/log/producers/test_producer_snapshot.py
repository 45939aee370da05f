"""Snapshots: Apache's bytes, fallback after damage, creation and removal of files."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptFile
from ottla.log.producers.producer_entry import BatchMetadata, ProducerEntry
from ottla.log.producers.producer_snapshot import ProducerSnapshots, decode_snapshot, encode_snapshot
from ottla.log.producers.producer_state import ProducerState
from ottla.sim.disk import MemoryDisk

# Written by Apache Kafka 4.3.0's ProducerStateManager.writeSnapshot: producers 7 (in a transaction) and 8 (no batch known).
APACHE = bytes.fromhex(
    "0001a597eb640000000200000000000000070002000000090000000000000068000000040000018bcfe5680100000003000000000000005a"
    "00000000000000080000ffffffffffffffffffffffff000000000000000000000005ffffffffffffffffffffffff"
)
APACHE_EMPTY = bytes.fromhex("000148674bc700000000")
ENTRIES = [
    ProducerEntry(7, 2, 3, 1700000000001, 90, [BatchMetadata(5, 9, 100, 104, 1700000000001)]),
    ProducerEntry(8, 0, -1, 5),
]
INT64 = st.integers(0, 2**63 - 1)


def folder() -> tuple[MemoryDisk, ProducerSnapshots]:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    return disk, ProducerSnapshots(disk, "/t-0")


def state_at(offset: int, producer_id: int = 1) -> ProducerState:
    state = ProducerState("t-0")
    state.load([ProducerEntry(producer_id, 0, last_timestamp_ms=10)], offset, now_ms=10, expiration_ms=100)
    return state


def take(snapshots: ProducerSnapshots, *offsets: int) -> None:
    for offset in offsets:
        assert snapshots.write(state_at(offset, offset)) is not None


def load(snapshots: ProducerSnapshots, start: int, end: int) -> tuple[ProducerState, list[CorruptFile]]:
    state = ProducerState("t-0")
    damage = asyncio.run(snapshots.load(state, start, end, now_ms=10, expiration_ms=100))
    return state, damage


def test_bytes_are_apaches() -> None:
    assert encode_snapshot(ENTRIES) == APACHE
    assert encode_snapshot([]) == APACHE_EMPTY
    assert repr(decode_snapshot("/f", APACHE)) == repr(ENTRIES)


@given(
    st.lists(
        st.builds(
            lambda ids, batch: ProducerEntry(*ids, [batch._replace(timestamp_ms=ids[3])] if batch else ()),
            st.tuples(INT64, st.integers(0, 2**15 - 1), st.integers(-1, 2**31 - 1), INT64, st.none() | INT64),
            st.none() | st.builds(BatchMetadata.ending_at, st.integers(0, 2**31 - 1), INT64, st.integers(0, 9), st.just(0)),
        )
    )
)
def test_round_trip(entries: list[ProducerEntry]) -> None:
    assert repr(decode_snapshot("/f", encode_snapshot(entries))) == repr(entries)


def test_every_cut_and_every_flipped_bit_is_found() -> None:
    for length in range(len(APACHE)):
        with pytest.raises(CorruptFile, match="Delete the file"):
            decode_snapshot("/f", APACHE[:length])
    for bit in range(len(APACHE) * 8):
        flipped = bytearray(APACHE)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFile):
            decode_snapshot("/f", bytes(flipped))
    with pytest.raises(CorruptFile):
        decode_snapshot("/f", APACHE + b"\0")


def test_snapshot_is_named_by_its_offset_and_written_once() -> None:
    disk, snapshots = folder()
    state = state_at(42)
    assert snapshots.write(state) == "/t-0/00000000000000000042.snapshot"
    assert snapshots.write(state) is None
    assert snapshots.offsets == [42]
    assert ProducerSnapshots(disk, "/t-0").offsets == [42]
    assert list(ProducerSnapshots(disk, "/t-0").read(42)[0].batches) == []


def test_no_snapshot_is_written_of_an_empty_log() -> None:
    _, snapshots = folder()
    load(snapshots, 0, 0)
    assert snapshots.write(ProducerState("t-0")) is None


def test_synced_snapshot_survives_a_power_loss() -> None:
    disk, snapshots = folder()
    take(snapshots, 5)
    asyncio.run(disk.sync_directory("/"))
    asyncio.run(snapshots.sync(5))
    after = disk.crash(power_loss=True)
    assert [entry.producer_id for entry in ProducerSnapshots(after, "/t-0").read(5)] == [5]


def test_load_takes_the_newest_within_the_log() -> None:
    disk, snapshots = folder()
    take(snapshots, 3, 10, 20, 30)
    state, damage = load(snapshots, start=3, end=25)
    assert (state.map_end_offset, list(state.producers), damage) == (20, [20], [])
    assert snapshots.offsets == [10, 20]
    assert len(disk.list_directory("/t-0")) == 2
    assert snapshots.write(state) is None
    state.advance(21)
    assert snapshots.write(state) is not None


def test_damaged_snapshots_are_removed_and_older_ones_taken() -> None:
    disk, snapshots = folder()
    take(snapshots, 10, 20, 30)
    for offset in (20, 30):
        asyncio.run(disk.replace_file(snapshots.path(offset), b"\0\1nonsense"))
    state, damage = load(snapshots, 0, 30)
    assert state.map_end_offset == 10
    assert [found.path for found in damage] == [snapshots.path(30), snapshots.path(20)]
    assert disk.list_directory("/t-0") == ["00000000000000000010.snapshot"]


def test_without_a_good_snapshot_the_log_is_replayed_from_its_start() -> None:
    disk, snapshots = folder()
    take(snapshots, 10)
    asyncio.run(disk.replace_file(snapshots.path(10), b""))
    state, damage = load(snapshots, 4, 30)
    assert (state.map_end_offset, state.is_empty, len(damage)) == (4, True, 1)


def test_expired_producers_are_not_loaded() -> None:
    _, snapshots = folder()
    take(snapshots, 10)
    state = ProducerState("t-0")
    asyncio.run(snapshots.load(state, 0, 10, now_ms=110, expiration_ms=100))
    assert state.is_empty
    assert state.map_end_offset == 10


@pytest.mark.parametrize(
    ("bases", "kept"),
    [([0, 10], [10, 30]), ([0, 10, 20], [10, 20, 30]), ([0, 40], []), ([30], [30]), ([], [30])],
)
def test_stray_snapshots_are_removed_except_that_of_a_shutdown(bases: list[int], kept: list[int]) -> None:
    disk, snapshots = folder()
    take(snapshots, 10, 20, 30)
    asyncio.run(snapshots.remove_stray(bases))
    assert snapshots.offsets == kept
    assert len(disk.list_directory("/t-0")) == len(kept)


def test_snapshot_of_a_deleted_segment_is_renamed_first() -> None:
    disk, snapshots = folder()
    take(snapshots, 10, 20)
    assert asyncio.run(snapshots.mark_deleted(10)) == "/t-0/00000000000000000010.snapshot.deleted"
    assert asyncio.run(snapshots.mark_deleted(11)) is None
    assert snapshots.offsets == [20]
    assert ProducerSnapshots(disk, "/t-0").offsets == [20]
    asyncio.run(disk.remove(snapshots.path(20)))
    assert asyncio.run(snapshots.mark_deleted(20)) is None


def test_other_files_are_no_snapshots() -> None:
    disk, _ = folder()
    for name in ("00000000000000000001.log", "x.snapshot", "00000000000000000002.snapshot.deleted"):
        asyncio.run(disk.replace_file(f"/t-0/{name}", b""))
    assert ProducerSnapshots(disk, "/t-0").offsets == []
    assert ProducerSnapshots(disk, "/nowhere").offsets == []
