"""Creating many partitions at once: the same result as one request for each, with fewer syncs."""

import asyncio
from collections import Counter

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.log_directories import SMALL, TOPIC_ID, NodeStorage
from tests.support.logs.partition_logs import run

from ottla.env import OpenMode
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.directories.creation import NewPartition
from ottla.log.partition_log import PartitionLog

WANTED = [NewPartition(TopicPartition("t", number), SMALL, TOPIC_ID) for number in range(50)]


def test_many_partitions_are_spread_evenly_and_survive_a_power_loss() -> None:
    node = NodeStorage()
    directories = node.open()
    made = run(directories.create_all(WANTED))
    assert [log.partition for log in made if isinstance(log, PartitionLog)] == [new.partition for new in WANTED]
    assert [len(each.logs) for each in directories.directories] == [25, 25]
    assert [each.partition_count for each in directories.directories] == [25, 25]
    again = node.crash(power_loss=True)
    assert set(again.logs) == {new.partition for new in WANTED}
    assert {each.topic_ids[name] for each in again.directories for name in each.logs} == {TOPIC_ID}


def test_the_directory_is_synced_less_often_than_partitions_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    node = NodeStorage()
    directories = node.open()
    synced: list[str] = []
    real_sync = node.disk.sync_directory

    async def sync_directory(path: str) -> None:
        await asyncio.sleep(0)  # as the real one, it lets other tasks run
        synced.append(path)
        await real_sync(path)

    monkeypatch.setattr(node.disk, "sync_directory", sync_directory)
    run(directories.create_all(WANTED))
    for path in ("/a", "/b"):
        assert 1 <= synced.count(path) <= 5


def test_a_directory_that_fails_during_creation_gets_none() -> None:
    node = NodeStorage()
    directories = node.open()
    node.disk.fail_directory("/b")
    made = run(directories.create_all(WANTED))
    assert all(isinstance(log, PartitionLog) and log.folder.startswith("/a/") for log in made)
    assert [loss.directory for loss in directories.take_losses()] == ["/b"]
    assert set(directories.logs) == {new.partition for new in WANTED}


def test_leftovers_of_an_earlier_attempt_are_reused() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    node.disk.make_directory("/a/t-0")
    node.disk.open("/a/t-0/00000000000000000000.log", OpenMode.CREATE)
    (log,) = run(directories.create_all(WANTED[:1]))
    assert isinstance(log, PartitionLog)
    log.append_as_leader(make_batch(b"v"), 0)
    assert node.crash().logs[WANTED[0].partition].log_end_offset == 1


def test_a_new_partition_equals_a_loaded_one() -> None:
    node = NodeStorage()
    directories = node.open()
    made = run(directories.create_all(WANTED[:1]))[0]
    assert isinstance(made, PartitionLog)
    node.fill(made.partition, 40)
    assert len(made.segments) > 1
    files = sorted(node.disk.list_directory(made.folder))
    assert not any(name.startswith("0" * 20 + ".snapshot") for name in files), "an empty log needs no snapshot"
    again = node.crash().logs[made.partition]
    assert (again.log_end_offset, again.segments.base_offsets) == (made.log_end_offset, made.segments.base_offsets)


@pytest.mark.parametrize("power_loss", [False, True])
def test_many_are_deleted_with_few_syncs_and_stay_deleted(power_loss: bool) -> None:
    node = NodeStorage()
    directories = node.open()
    run(directories.create_all(WANTED))
    names = [new.partition for new in WANTED]
    before = Counter(node.disk.counts)
    assert run(directories.delete_all([*names, TopicPartition("other", 0)])) == []
    done = node.disk.counts - before
    assert done["replace"] == 6, "three checkpoints in each of two directories"
    assert not directories.logs
    assert [directories.directory_of(name) for name in names] == [None] * 50
    again = node.crash(power_loss)
    assert not again.logs
    made = run(again.create_all(WANTED))
    assert all(isinstance(log, PartitionLog) and log.log_end_offset == log.recovery_point == 0 for log in made)


def test_partitions_in_a_failed_directory_are_not_deleted() -> None:
    node = NodeStorage()
    directories = node.open()
    run(directories.create_all(WANTED))
    node.disk.fail_directory("/b")
    (failure,) = run(directories.delete_all([new.partition for new in WANTED]))
    assert failure.directory == "/b"
    assert not directories.directories[0].logs


def test_each_partition_is_refused_separately() -> None:
    node = NodeStorage()
    directories = node.open()
    run(directories.create(WANTED[1].partition, SMALL, b"another topic..."))
    made = run(directories.create_all(WANTED[:3]))
    assert [isinstance(log, PartitionLog) for log in made] == [True, False, True]
    assert isinstance(made[1], KafkaError)
    assert made[1].code == ErrorCode.INCONSISTENT_TOPIC_ID
