"""At the open files limit: open logs keep working, new files have to wait, and no directory counts as failed."""

import errno

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.log_directories import SMALL, TOPIC_ID, NodeStorage
from tests.support.logs.partition_logs import run

from ottla.errors import KafkaError, LogDirectoryFailed, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.directories.creation import NewPartition
from ottla.log.directories.relocation import begin
from ottla.log.partition_log import PartitionLog
from ottla.sim.disk import Fault

T0 = TopicPartition("t", 0)


def short_of(node: NodeStorage, files_left: int | None) -> None:
    node.disk.files_left = files_left


def test_partitions_are_created_until_the_open_files_limit() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    short_of(node, 3 * 70 - 1)  # room for a piece of 64; the simulated disk does not count the files opened then
    wanted = [NewPartition(TopicPartition("t", number), SMALL, TOPIC_ID) for number in range(64)]
    assert all(isinstance(made, PartitionLog) for made in run(directories.create_all(wanted)))
    short_of(node, 3 * 5 + 2)
    wanted = [NewPartition(TopicPartition("u", number), SMALL, TOPIC_ID) for number in range(64)]
    made = run(directories.create_all(wanted))
    assert [isinstance(each, PartitionLog) for each in made] == [True] * 5 + [False] * 59
    assert isinstance(made[5], OutOfDescriptors)
    assert "u-5 cannot be made" in str(made[5])
    assert "ulimit -n" in str(made[5])
    assert directories.take_losses() == []
    assert "u-5" not in node.disk.list_directory("/a"), "no leftovers"
    short_of(node, None)
    assert all(isinstance(each, PartitionLog) for each in run(directories.create_all(wanted)))


@pytest.mark.parametrize("power_loss", [False, True])
def test_new_partition_keeps_no_file_open_while_descriptors_are_short(power_loss: bool) -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    node.disk.is_short = True
    node.create("t")
    log = directories.logs[T0]
    assert log.segments.active.is_dormant
    assert log.log_end_offset == 0
    node.disk.is_short = False
    node.create("u")
    assert not directories.logs[TopicPartition("u", 0)].segments.active.is_dormant
    assert log.append_as_leader(make_batch(b"v"), 0).first_offset == 0
    run(log.flush())
    assert not log.segments.active.is_dormant
    assert node.crash(power_loss=power_loss).logs[T0].log_end_offset == 1


def test_a_log_keeps_its_segment_until_it_can_roll() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    node.create("t")
    short_of(node, 0)
    node.fill(T0, 60)
    log = directories.logs[T0]
    assert log.segments.base_offsets == [0]
    assert log.size_bytes > 2 * SMALL.segment_bytes
    short_of(node, None)
    node.fill(T0, 1)
    assert log.segments.base_offsets == [0, 120]
    assert node.crash(power_loss=False).logs[T0].log_end_offset == 122


def test_an_append_with_a_full_index_is_refused() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    node.create("t")
    log = directories.logs[T0]
    node.fill(T0, 3)
    log.segments.active.offset_index.entries_max = log.segments.active.offset_index.count
    short_of(node, 0)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(make_batch(b"v"), 0)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "ulimit -n" in str(refused.value)
    short_of(node, None)
    assert log.append_as_leader(make_batch(b"v"), 0).first_offset == 6


def test_retention_keeps_the_active_segment_until_it_can_roll() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    node.create("t")
    node.fill(T0, 5)
    log = directories.logs[T0]
    short_of(node, 0)
    assert run(log.delete_segments(list(log.segments))) == 0
    short_of(node, None)
    assert run(log.delete_segments(list(log.segments))) == 1


def test_a_read_that_cannot_open_an_index_does_not_fail_the_disk() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    node.create("t")
    node.fill(T0, 60)
    log = directories.logs[T0]
    run(log.flush())  # closes the indexes of the older segments
    fault = node.disk.fail("open", "/a/t-0/*", errno.EMFILE)
    with pytest.raises(OutOfDescriptors, match="t-0 cannot be read"):
        log.read(30, 1000)
    assert fault.hits == 1
    assert log.failure is None
    assert log.read(30, 1000).records is not None


def test_a_move_is_refused() -> None:
    node = NodeStorage()
    directories = node.open()
    node.create("t")
    short_of(node, 0)
    target = directories.directories[1]
    with pytest.raises(KafkaError, match="t-0 cannot be moved"):
        run(begin(directories, T0, target))
    assert target.is_online


def test_a_directory_that_fails_all_the_same_says_what_to_do() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    node.disk.faults.append(Fault("open", "/a/t-0/*", errno.EMFILE))
    with pytest.raises(LogDirectoryFailed, match=r"Raise the limit on open files \(ulimit -n\) and restart the node"):
        run(directories.create(T0, SMALL, TOPIC_ID))
