"""Recovery beside what a power loss or a kill leaves around the records."""

from tests.support.logs import FOLDER, LogOnDisk, run

from ottla.log.names import LEADER_EPOCH_CHECKPOINT


def test_epochs_of_lost_records_do_not_come_back() -> None:
    """The checkpoint knew an epoch from offset 2 on; after a power loss that epoch began again, at 1. Then a kill."""
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


def test_a_torn_tail_that_was_cut_stays_cut() -> None:
    """The cut is on the device before anything follows it: the segment may never be synced again."""
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


def test_the_last_time_index_entry_is_synced_though_its_records_were_long_before() -> None:
    """Rolling completes the index of a segment that lies below the recovery point already."""
    world = LogOnDisk()
    world.append(b"only")
    world.flush()
    world.log.roll()
    world.append(b"next")
    world.flush()
    assert world.disk.names.find(f"{FOLDER}/{0:020d}.timeindex").is_synced


def test_a_truncation_that_was_killed_is_not_undone_later() -> None:
    """The start after the kill has told where the log ends; a power loss must not make it longer."""
    world = LogOnDisk()
    world.append(b"kept")
    world.append(b"truncated")
    world.flush()
    log_file = world.disk.names.find(f"{FOLDER}/{0:020d}.log")
    world.log.segments.active.truncate_to(1, now_ms=0)
    world.crash()
    assert world.log.log_end_offset == 1
    assert log_file.is_synced
