"""Recovery of a segment with wrong epochs, indexes and snapshots around it, as a power loss, a kill or damage leaves them."""

from copy import deepcopy
from random import Random

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.errors import CorruptFile
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.names import LEADER_EPOCH_CHECKPOINT
from ottla.log.recovery.log_loader import note_epoch
from ottla.records.batch import BatchView
from ottla.sim.disk import MemoryDisk


def test_epochs_of_lost_records_do_not_come_back() -> None:
    """The checkpoint has an epoch from offset 2 on; after a power loss that epoch began again, at 1. Then a kill."""
    world = LogOnDisk()
    world.append(b"kept", epoch=6)
    world.flush()
    world.append(b"lost", epoch=6)
    world.log.assign_epoch(7, 2)
    run(world.log.epochs.flush())
    world.disk.names.find(f"{FOLDER}/{0:020d}.log").data = world.disk.names.find(f"{FOLDER}/{0:020d}.log").synced_bytes()
    world.crash()
    assert world.log.log_end_offset == 1
    world.append(b"another", epoch=7)
    assert world.log.epochs.entries == [(6, 0), (7, 1)]
    world.crash()
    assert world.disk.read_file(f"{FOLDER}/{LEADER_EPOCH_CHECKPOINT}") == b"0\n2\n6 0\n7 2\n"
    assert world.log.epochs.entries == [(6, 0), (7, 1)]


def test_batches_before_the_logs_start_do_not_change_the_epochs() -> None:
    """The epoch that began at 3 is in the checkpoint only: compaction may have removed its first batch."""
    world = LogOnDisk()
    for epoch in (4, 4, 5, 6):
        world.append(b"value", epoch=epoch)
    world.log.update_high_watermark(4)
    world.log.delete_records(1)
    run(world.disk.replace_file(f"{FOLDER}/{LEADER_EPOCH_CHECKPOINT}", b"0\n3\n4 1\n5 2\n6 3\n"))
    world.checkpoint()
    world.crash()
    assert world.log.epochs.entries == [(4, 1), (5, 2), (6, 3)]


def test_a_first_epoch_that_began_earlier_than_the_checkpoint_says() -> None:
    """The checkpoint is from before a truncation to the log start; its first epoch has begun again since, at 0."""
    world = LogOnDisk()
    world.append(b"value", epoch=4)
    world.append(b"value", epoch=6)
    run(world.disk.replace_file(f"{FOLDER}/{LEADER_EPOCH_CHECKPOINT}", b"0\n2\n4 1\n5 2\n"))
    world.crash()
    assert world.log.epochs.entries == [(4, 0), (6, 1)]


def test_an_epoch_whose_first_batches_were_compacted_away_is_kept() -> None:
    """The checkpoint was cut at a log start that a crash undid. Epoch 8 wrote from 102 on; only 108 is left."""
    epochs = LeaderEpochs(MemoryDisk(), FOLDER)
    for epoch, start_offset in ((4, 99), (8, 102)):
        epochs.assign(epoch, start_offset)
    for epoch, base_offset in ((3, 83), (4, 97), (4, 100), (8, 108)):
        note_epoch(epochs, BatchView(make_batch(b"value", base_offset=base_offset, leader_epoch=epoch)))
    assert epochs.entries == [(3, 83), (4, 97), (8, 102)]


def test_a_torn_tail_that_was_cut_stays_cut() -> None:
    """The cut is durable before the next append: the segment may never be synced again."""
    world = LogOnDisk()
    world.append(b"kept")
    world.flush()
    world.append(b"torn")
    log_file = world.disk.names.find(f"{FOLDER}/{0:020d}.log")
    kept_bytes = log_file.synced_size
    del log_file.data[-5:]
    log_file.sync()
    report = world.crash()
    assert report.bytes_cut > 0
    world.log.roll()
    world.append(b"next")
    world.flush()
    assert log_file.is_synced
    assert len(log_file.data) == kept_bytes


def test_the_last_time_index_entry_of_a_rolled_segment_is_synced() -> None:
    """Rolling completes the index of a segment that is below the recovery point already."""
    world = LogOnDisk()
    world.append(b"only")
    world.flush()
    world.log.roll()
    world.append(b"next")
    world.flush()
    assert world.disk.names.find(f"{FOLDER}/{0:020d}.timeindex").is_synced


def test_a_truncation_that_was_killed_is_not_undone_later() -> None:
    """The start after the kill has reported the log end offset; a power loss must not bring records or aborts back."""
    world = LogOnDisk()
    world.append(b"kept", producer=(8, 0, 0), transactional=True)
    world.end_transaction(8, commit=False)
    world.flush()
    world.log.segments.active.truncate_to(1, now_ms=0)
    world.crash()
    assert world.log.log_end_offset == 1
    for suffix in ("log", "txnindex"):
        assert world.disk.names.find(f"{FOLDER}/{0:020d}.{suffix}").is_synced


def test_the_name_of_a_new_transaction_index_survives_a_power_loss() -> None:
    """A flushed abort stays an abort: the transaction index was created after the other files of its segment."""
    world = LogOnDisk()
    world.append(b"to be aborted", producer=(8, 0, 0), transactional=True)
    world.flush()
    world.end_transaction(8, commit=False)
    world.flush()
    world.log.roll()
    for _ in range(20):
        copy = MemoryDisk(Random(_), world.clock)
        copy.names = deepcopy(world.disk.names)
        after = LogOnDisk()
        after.disk, after.recovery_point = copy.crash(power_loss=True), world.recovery_point
        after.load()
        assert [txn.producer_id for txn in after.log.aborted_transactions(0, 2)] == [8]


def test_damage_found_by_a_time_lookup_is_named() -> None:
    world = LogOnDisk()
    world.append(b"one", b"two", timestamp=5)
    world.append(b"three", timestamp=50)
    world.disk.names.find(f"{FOLDER}/{0:020d}.log").data[75] ^= 1
    with pytest.raises(CorruptFile, match=f"{0:020d}.log at byte 0"):
        world.log.offset_for_time(5)


def test_a_segment_whose_offsets_go_back_is_not_split() -> None:
    """An impossible offset with lower ones after it: the offset is damaged, and the CRC does not cover it."""
    world = LogOnDisk()
    for value in (b"one", b"two", b"three"):
        world.append(value)
    data = world.disk.names.find(f"{FOLDER}/{0:020d}.log").data
    data[len(data) // 3] ^= 0x10
    with pytest.raises(CorruptFile, match=f"{0:020d}.log at byte"):
        world.crash()


def test_a_snapshot_from_before_deleted_segments_is_not_used() -> None:
    """Retention removed the segment with sequence 1, a power loss the snapshot after it; the one before has only sequence 0."""
    world = LogOnDisk()
    world.append(b"sequence 0", producer=(7, 0, 0))
    world.crash()  # leaves a snapshot at offset 1
    world.append(b"sequence 1", producer=(7, 0, 1))
    world.log.roll()
    world.append(b"another's")
    world.log.update_high_watermark(3)
    run(world.log.delete_segments([world.log.segments.first]))
    run(world.disk.remove(f"{FOLDER}/{2:020d}.snapshot"))
    assert world.disk.exists(f"{FOLDER}/{1:020d}.snapshot")
    world.crash()
    assert world.log.log_start_offset == 2
    assert 7 not in world.log.producers.producers
    assert world.append(b"sequence 2", producer=(7, 0, 2)) == 3
