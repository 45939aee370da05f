"""Logs without records after an unclean shutdown: their files are synced, then closed until the first append."""

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.log_directories import NodeStorage
from tests.support.logs.partition_logs import run

from ottla.env import OpenMode
from ottla.ids import TopicPartition
from ottla.log.directories.startup import MustStop
from ottla.log.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file_name
from ottla.sim.disk import Fault

T0 = TopicPartition("t", 0)
FIRST_FILES = [segment_file_name(0, suffix) for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)]


@pytest.fixture
def node() -> NodeStorage:
    made = NodeStorage(("/a",))
    made.open()
    made.create("t")
    return made


def is_dormant(node: NodeStorage) -> bool:
    return node.directories.logs[T0].segments.active.is_dormant


def test_log_without_records_opens_at_its_first_append(node: NodeStorage) -> None:
    node.crash()
    assert is_dormant(node)
    log = node.directories.logs[T0]
    assert log.append_as_leader(make_batch(b"v"), 0).first_offset == 0
    run(log.flush())
    node.crash(power_loss=True)
    assert not is_dormant(node)
    assert node.directories.logs[T0].log_end_offset == 1


def test_more_logs_than_are_synced_at_once() -> None:
    node = NodeStorage(("/a",))
    node.open()
    filled = [node.create("t", number) for number in range(70)][::7]
    for partition in filled:
        node.fill(partition, 1)
    node.crash()
    logs = node.directories.logs
    assert [partition for partition, log in sorted(logs.items()) if not log.segments.active.is_dormant] == filled
    assert all(logs[partition].log_end_offset == 2 for partition in filled)


def test_truncated_records_do_not_come_back_with_a_power_loss(node: NodeStorage) -> None:
    node.fill(T0, 2)
    run(node.directories.logs[T0].flush())
    for name in FIRST_FILES:  # the process is killed before it has synced a truncation
        node.disk.open(f"/a/t-0/{name}", OpenMode.WRITE).truncate(0)
    node.crash()
    assert is_dormant(node)
    files = {path: inode for path, inode in node.disk.names.files() if path.startswith("/a/t-0/0")}
    assert len(files) == len(FIRST_FILES)
    assert all(inode.is_synced for inode in files.values())


def test_directory_fails_if_they_cannot_be_synced(node: NodeStorage) -> None:
    node.disk = node.disk.crash(power_loss=False)
    node.disk.faults.append(Fault("sync", f"/a/t-0/{FIRST_FILES[0]}"))
    with pytest.raises(MustStop, match="log directory /a has failed"):
        node.open()
