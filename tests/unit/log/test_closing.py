"""Closing logs for a clean shutdown: what it syncs, and what survives a power loss after it."""

import pytest
from tests.support.logs.log_directories import NodeStorage
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.errors import LogDirectoryFailed, OttlaError
from ottla.ids import TopicPartition
from ottla.log.names import LEADER_EPOCH_CHECKPOINT
from ottla.log.partition_log import close_all

SYNCS = ("sync", "sync_directory", "replace")


def syncs(env: LogOnDisk) -> int:
    return sum(env.disk.counts[name] for name in SYNCS)


def test_log_that_never_had_a_record_is_closed_without_a_sync() -> None:
    env = LogOnDisk()
    env.log.assign_epoch(7, 0)
    before = syncs(env)
    env.close()
    assert syncs(env) == before


@pytest.mark.parametrize("batches", [0, 25])
def test_log_that_was_not_changed_since_a_clean_start_is_closed_without_a_sync(batches: int) -> None:
    env = LogOnDisk()
    env.fill(batches)
    env.reopen()
    env.log.assign_epoch(8, env.log.log_end_offset)  # a new leader without records: loading would drop it
    before = syncs(env)
    env.close()
    assert syncs(env) == before
    env.load(clean=True)
    assert env.offsets() == list(range(2 * batches))
    assert env.log.latest_epoch == (0 if batches else None)


def test_leader_epoch_with_records_is_written() -> None:
    env = LogOnDisk()
    env.fill(3)
    env.reopen()
    env.fill(3, epoch=4)
    env.close()
    assert env.disk.read_file(f"{FOLDER}/{LEADER_EPOCH_CHECKPOINT}") == b"0\n2\n0 0\n4 6\n"


@pytest.mark.parametrize("is_flushed", [False, True])
def test_epoch_stays_on_file_when_all_records_are_deleted(is_flushed: bool) -> None:
    """Apache Kafka's file has the same line after DeleteRecords up to the end and a clean shutdown."""
    env = LogOnDisk()
    env.fill(3)
    env.log.update_high_watermark(6)
    env.log.delete_records(6)
    if is_flushed:
        env.flush()
    env.close()
    assert env.disk.read_file(f"{FOLDER}/{LEADER_EPOCH_CHECKPOINT}") == b"0\n1\n0 6\n"
    for epoch in (2, 4):
        assert env.load(clean=True).notes == []
        env.log.assign_epoch(epoch, 6)
        env.close()


def test_missing_epochs_of_deleted_records_are_noted_once() -> None:
    env = LogOnDisk()
    env.fill(3)
    env.log.update_high_watermark(6)
    env.log.delete_records(6)
    env.close()
    run(env.disk.remove(f"{FOLDER}/{LEADER_EPOCH_CHECKPOINT}"))
    assert "is missing or empty" in env.load(clean=True).notes[0]
    env.log.assign_epoch(2, 6)
    env.close()
    assert env.load(clean=True).notes == []


@pytest.mark.parametrize("is_closed", [False, True])
def test_records_flushed_after_the_start_of_an_empty_log_survive_a_power_loss(is_closed: bool) -> None:
    """The shutdown of a log without records syncs no names: the first flush, or the next shutdown, must do it."""
    for seed in range(20):
        env = LogOnDisk()
        env.disk.random.seed(seed)
        env.reopen()
        env.fill(4)
        if is_closed:
            env.close()
        else:
            env.flush()
        env.disk = env.disk.crash(power_loss=True)
        env.load(clean=is_closed)
        assert env.offsets() == list(range(8))


def test_flush_after_a_kill_covers_what_the_killed_process_wrote() -> None:
    for seed in range(20):
        env = LogOnDisk()
        env.disk.random.seed(seed)
        env.fill(30)
        env.crash()
        env.flush()
        env.crash(power_loss=True)
        assert env.offsets() == list(range(60))


@pytest.mark.parametrize("seed", range(12))
def test_records_flushed_after_a_clean_start_survive_a_power_loss(seed: int) -> None:
    env = LogOnDisk()
    env.disk.random.seed(seed)
    for batches in (0, 4, 0, 30):
        env.fill(batches, epoch=seed)
        env.flush()
        end = env.log.log_end_offset
        env.crash(power_loss=True)
        assert env.offsets() == list(range(end))
        env.reopen()
        env.fill(batches, epoch=seed + 1)
        env.flush()
        end = env.log.log_end_offset
        env.crash(power_loss=True)
        assert env.offsets() == list(range(end))
        env.close()
        env.disk = env.disk.crash(power_loss=True)
        env.load(clean=True)
        assert env.offsets() == list(range(end))


def test_many_logs_are_closed_together() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    for number in range(5):
        node.create("t", number)
    node.fill(TopicPartition("t", 3), 4)
    logs = list(directories.logs.values())
    run(close_all(logs))
    for log in logs:
        assert log.recovery_point == log.log_end_offset
        with pytest.raises(OttlaError, match="is closed"):
            log.read(0, 10)
    run(close_all([]))


def test_failed_sync_fails_every_log_of_the_piece() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    for number in range(3):
        node.create("t", number)
        node.fill(TopicPartition("t", number), 1)
    node.disk.fail("sync", "*/t-1/*.log")
    with pytest.raises(LogDirectoryFailed):
        run(close_all(list(directories.logs.values())))
    assert all(isinstance(log.failure, LogDirectoryFailed) for log in directories.logs.values())
