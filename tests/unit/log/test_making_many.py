"""Many partitions made at once: as many requests for one each would have left them, but with less waiting."""

import asyncio

import pytest
from tests.support.log_directories import SMALL, TOPIC_ID, NodeStorage
from tests.support.logs import run

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.directories import NewPartition
from ottla.log.partition_log import PartitionLog

WANTED = [NewPartition(TopicPartition("t", number), SMALL, TOPIC_ID) for number in range(50)]


def test_they_are_spread_as_if_made_one_after_the_other_and_outlive_a_power_loss() -> None:
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
    usual = node.disk.sync_directory

    async def sync_directory(path: str) -> None:
        await asyncio.sleep(0)  # as the real one, it lets others go on meanwhile
        synced.append(path)
        await usual(path)

    monkeypatch.setattr(node.disk, "sync_directory", sync_directory)
    run(directories.create_all(WANTED))
    for path in ("/a", "/b"):
        assert 1 <= synced.count(path) <= 5


def test_a_directory_that_fails_meanwhile_gets_none_of_them() -> None:
    node = NodeStorage()
    directories = node.open()
    node.disk.fail_directory("/b")
    made = run(directories.create_all(WANTED))
    assert all(isinstance(log, PartitionLog) and log.folder.startswith("/a/") for log in made)
    assert [loss.directory for loss in directories.take_losses()] == ["/b"]
    assert set(directories.logs) == {new.partition for new in WANTED}


def test_each_is_refused_for_itself() -> None:
    node = NodeStorage()
    directories = node.open()
    run(directories.create(WANTED[1].partition, SMALL, b"another topic..."))
    made = run(directories.create_all(WANTED[:3]))
    assert [isinstance(log, PartitionLog) for log in made] == [True, False, True]
    assert isinstance(made[1], KafkaError)
    assert made[1].code == ErrorCode.INCONSISTENT_TOPIC_ID
