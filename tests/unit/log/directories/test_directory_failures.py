"""A failed disk takes only its own partitions offline; a node stops only where Kafka's does. Damaged partitions are refused."""

import pytest
from tests.support.logs.log_directories import SMALL, TOPIC_ID, NodeStorage
from tests.support.logs.partition_logs import run

from ottla.env import HelperDied, OpenMode
from ottla.errors import BrokenInvariant, DirectoryInUse, KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.directories import startup
from ottla.log.directories.clean_shutdown import CleanShutdown, read_clean_shutdown
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.startup import MustStop
from ottla.sim.world import InPlaceHelpers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def two_partitions() -> NodeStorage:
    """t-0 in /a, which also has the metadata log; t-1 in /b."""
    node = NodeStorage()
    node.open()
    for number in range(2):
        node.fill(node.create("t", number))
    return node


def is_offline(directories: LogDirectories, partition: TopicPartition) -> bool:
    try:
        return directories.find(partition) is None
    except KafkaError as error:
        assert error.code == ErrorCode.KAFKA_STORAGE_ERROR  # noqa: PT017 - another code would be a wrong answer to a client
        return True


def fail_flush(node: NodeStorage, partition: TopicPartition, path: str) -> LogDirectoryFailed:
    node.disk.fail_directory(path)
    log = node.directories.find(partition)
    assert log is not None
    with pytest.raises(LogDirectoryFailed) as failed:
        run(log.flush())
    return failed.value


def test_failed_directory_takes_only_its_own_partitions_offline() -> None:
    node = two_partitions()
    node.create("u")
    node.create("v")  # in /b, and never touched again
    loss = node.directories.lose(fail_flush(node, T1, "/b"))
    assert loss is not None
    assert (loss.directory, loss.partitions) == ("/b", (T1, TopicPartition("v", 0)))
    assert loss.must_stop is None
    assert loss.directory_id is not None
    assert is_offline(node.directories, T1)
    assert is_offline(node.directories, TopicPartition("v", 0))
    assert not is_offline(node.directories, T0)
    node.fill(T0, 3)
    assert node.directories.lose(LogDirectoryFailed("/b", OSError())) is None


def test_loss_of_the_metadata_directory_stops_the_node() -> None:
    node = two_partitions()
    loss = node.directories.lose(fail_flush(node, T0, "/a"))
    assert loss is not None
    assert loss.must_stop is not None
    assert "the node cannot work without its metadata log: log directory /a has failed" in loss.must_stop


def test_loss_of_the_last_directory_stops_the_node() -> None:
    node = NodeStorage(("/a", "/b"))
    node.use(metadata_log_dir="/m")
    node.format("/m")
    node.open()
    for number in range(2):
        node.fill(node.create("t", number))
    first = node.directories.lose(fail_flush(node, T0, "/a"))
    assert first is not None
    assert first.must_stop is None
    second = node.directories.lose(fail_flush(node, T1, "/b"))
    assert second is not None
    assert second.must_stop is not None
    assert "no log directory is left: all of /a, /b have failed" in second.must_stop


def test_upkeep_goes_on_with_the_other_directories() -> None:
    node = two_partitions()
    node.disk.fail_directory("/b")
    run(node.upkeep.write_recovery_points())
    (loss,) = node.directories.take_losses()
    assert loss.directory == "/b"
    assert node.directories.take_losses() == []
    assert node.disk.read_file("/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 0\n"
    run(node.upkeep.write_high_watermarks())
    assert node.directories.take_losses() == []


def test_flush_in_a_failed_directory_is_a_loss_and_the_rest_is_flushed() -> None:
    node = two_partitions()
    for log in node.directories.logs.values():
        log.roll()
    node.disk.fail_directory("/b")
    run(node.upkeep.flush_due())
    assert [loss.directory for loss in node.directories.take_losses()] == ["/b"]
    log = node.directories.find(T0)
    assert log is not None
    assert log.recovery_point == log.log_end_offset


def test_new_partition_goes_to_the_next_directory_when_one_fails() -> None:
    node = NodeStorage(("/a", "/b", "/c"))
    node.open()
    node.create("t", 0)
    node.disk.fail_directory("/b")
    node.create("t", 1)
    assert node.directories.directory_of(T1) is node.directories.directories[2]
    assert [loss.directory for loss in node.directories.take_losses()] == ["/b"]


def test_nothing_is_made_when_everything_fails() -> None:
    node = NodeStorage(("/a",))
    node.open()
    node.disk.fail_directory("/a")
    with pytest.raises(LogDirectoryFailed):
        node.create("t")
    with pytest.raises(KafkaError, match="no log directory is left"):
        node.create("t")


def test_partition_maybe_in_a_failed_directory_is_not_created() -> None:
    node = two_partitions()
    node.close()
    node.disk.fail_directory("/b")
    node.open()
    assert [loss.directory for loss in node.directories.take_losses()] == ["/b"]
    with pytest.raises(KafkaError, match="it may be in /b, which failed") as refused:
        node.create("t", 1, is_new=False)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    node.create("t", 9)


def test_failed_directory_gets_no_clean_shutdown_file() -> None:
    node = two_partitions()
    node.disk.fail("sync", "/b/*")
    node.close()
    assert [loss.directory for loss in node.directories.take_losses()] == ["/b"]
    assert node.disk.exists("/a/.kafka_cleanshutdown")
    assert not node.disk.exists("/b/.kafka_cleanshutdown")


@pytest.mark.parametrize(("is_lost", "epoch"), [(False, 7), (True, -1)])
def test_clean_shutdown_has_no_broker_epoch_after_a_failed_directory(is_lost: bool, epoch: int) -> None:
    """A start without that directory would count as clean, and the new logs of its partitions as those of before."""
    node = two_partitions()
    if is_lost:
        node.directories.lose(fail_flush(node, T1, "/b"))
    run(node.directories.close(broker_epoch=7))
    assert read_clean_shutdown(node.disk, "/a") == CleanShutdown(epoch)


def test_locks_are_released_after_any_failure() -> None:
    node = two_partitions()
    fault = node.disk.fail("sync", "/b/*")
    node.close()
    node.disk.faults.remove(fault)
    node.open()
    assert node.ends()["t-1"][2] == 60
    with pytest.raises(DirectoryInUse):
        node.open()


def test_start_without_the_metadata_directory_is_refused() -> None:
    node = two_partitions()
    node.close()
    node.disk.fail_directory("/a")
    with pytest.raises(MustStop, match="without its metadata log: log directory /a has failed"):
        node.open()


def test_start_with_a_failing_log_takes_the_directory_offline() -> None:
    node = two_partitions()
    node.close()
    node.disk.fail_directory("/b/t-1")
    directories = node.open()
    (loss,) = directories.take_losses()
    assert (loss.directory, loss.must_stop) == ("/b", None)
    assert list(directories.logs) == [T0]


def test_failure_of_a_deleted_log_is_not_a_failure_of_its_directory() -> None:
    node = two_partitions()
    log = node.directories.find(T1)
    assert log is not None
    run(node.directories.delete(T1))
    assert node.directories.lose(LogDirectoryFailed("/b", OSError("no such file")), log) is None
    assert node.directories.directories[1].is_online


# Damaged partitions


def with_damaged_t1(node: NodeStorage) -> None:
    run(node.disk.replace_file("/b/t-1/partition.metadata", b"version: 0\ntopic_"))


def test_damaged_partition_stays_offline_and_is_not_created_again() -> None:
    node = two_partitions()
    node.close()
    with_damaged_t1(node)
    node.open()
    assert is_offline(node.directories, T1)
    assert not is_offline(node.directories, T0)
    with pytest.raises(KafkaError, match=r"t-1 is offline: /b/t-1/partition\.metadata at byte 11.*Copy the file"):
        node.create("t", 1)


def test_repaired_partition_comes_back_with_its_offsets() -> None:
    node = two_partitions()
    good = node.disk.read_file("/b/t-1/partition.metadata")
    log = node.directories.find(T1)
    assert log is not None
    log.delete_records(5)
    node.close()
    with_damaged_t1(node)
    node.open()
    node.close()
    assert node.disk.exists("/b/.kafka_cleanshutdown")
    run(node.disk.replace_file("/b/t-1/partition.metadata", good))
    node.open()
    assert node.ends()["t-1"] == (5, 60, 60)


def test_unrecovered_damaged_partition_is_recovered_once_repaired() -> None:
    node = two_partitions()
    good = node.disk.read_file("/b/t-1/partition.metadata")
    with_damaged_t1(node)
    node.crash()
    node.close()
    assert not node.disk.exists("/b/.kafka_cleanshutdown")
    assert node.disk.exists("/a/.kafka_cleanshutdown")
    run(node.disk.replace_file("/b/t-1/partition.metadata", good))
    directories = node.open()
    assert directories.directories[1].found is None
    assert node.ends()["t-1"][2] == 60


def test_damaged_partition_can_be_deleted_and_made_again() -> None:
    node = two_partitions()
    node.close()
    with_damaged_t1(node)
    node.open()
    assert run(node.directories.delete(T1))
    node.create("t", 1)
    assert node.ends()["t-1"] == (0, 0, 0)


def test_broken_invariant_is_not_taken_for_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise BrokenInvariant("impossible")

    node = two_partitions()
    node.close()
    with monkeypatch.context() as patch:
        patch.setattr(startup, "load_log", broken)
        with pytest.raises(BrokenInvariant):
            node.open()
    node.open()


# Recovery in helper processes


def test_large_logs_are_recovered_by_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "RECOVER_IN_PLACE_BYTES_MAX", 100)
    node = two_partitions()
    small = node.create("small")
    run(node.upkeep.write_high_watermarks())
    last = max(name for name in node.disk.list_directory("/a/t-0") if name.endswith(".log"))
    node.disk.open(f"/a/t-0/{last}", OpenMode.WRITE).append(b"torn")
    before = node.ends()
    helpers: list[InPlaceHelpers] = []

    def make(disk: object) -> InPlaceHelpers:
        helpers.append(InPlaceHelpers(disk, node.clock))  # type: ignore[arg-type]  # the simulated disk
        return helpers[-1]

    node.crash(helpers=make)
    assert helpers[0].jobs_run == 2
    assert node.ends() == before
    for partition in (T0, T1):
        log = node.directories.find(partition)
        assert log is not None
        assert log.recovery_point == log.log_end_offset
    assert node.directories.find(small) is not None


def test_log_whose_helper_died_is_recovered_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying:
        async def run(self, *_: object) -> dict[str, object]:
            raise HelperDied("killed")

    monkeypatch.setattr(startup, "RECOVER_IN_PLACE_BYTES_MAX", 100)
    node = two_partitions()
    ends = {name: end[2] for name, end in node.ends().items()}
    node.crash(helpers=lambda _disk: Dying())
    assert {name: end[2] for name, end in node.ends().items()} == ends


def test_nothing_goes_to_helpers_after_a_clean_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "RECOVER_IN_PLACE_BYTES_MAX", 0)
    node = two_partitions()
    node.close()
    helpers = InPlaceHelpers(node.disk, node.clock)
    node.open(helpers)
    assert helpers.jobs_run == 0


# Killed at any point


@pytest.mark.parametrize("power_loss", [False, True])
def test_node_killed_at_any_step_starts_again(power_loss: bool) -> None:
    """Create, fill, flush, delete, close: stopped after every single change to the disk. Nothing flushed is lost."""
    steps = 0
    while True:
        node = NodeStorage(("/a",))
        node.open()
        keep = node.create("keep")
        node.fill(keep, 20)
        log = node.directories.find(keep)
        assert log is not None
        run(log.flush())
        run(node.upkeep.write_recovery_points())
        run(node.disk.sync_directory("/a"))
        node.disk.crash_before(steps)
        try:
            run(node.directories.create(TopicPartition("new", 0), SMALL, TOPIC_ID))
            run(node.directories.delete(TopicPartition("new", 0)))
            node.clock.advance(5000)
            run(node.upkeep.delete_due())
            node.close()
        except (LogDirectoryFailed, OSError):
            pass
        finished = not node.disk.crashed
        node.crash(power_loss)
        assert node.ends()["keep-0"][2] == 40
        assert set(node.ends()) <= {"keep-0", "new-0"}
        if finished:
            break
        steps += 1
    assert steps > 20
