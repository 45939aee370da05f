"""Log directories: opening after clean and unclean shutdowns, placement, creating and deleting partitions."""

import asyncio
import logging
from dataclasses import replace

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.log_directories import SMALL, TOPIC_ID, NodeStorage
from tests.support.logs.partition_logs import run

from ottla.config.topic import LogConfig
from ottla.env import OpenMode
from ottla.errors import CorruptFile, DirectoryInUse, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.log_directory import DirectoryWorld
from ottla.log.directories.meta_properties import MetaProperties, WrongDirectory, read_meta_properties, write_meta_properties
from ottla.log.directories.startup import lock_directories
from ottla.log.names import LOG_SUFFIX, InvalidFolderName, segment_file_name
from ottla.log.partition_log import PartitionLog

OTHER_TOPIC = Uuid(bytes(15) + b"\xdd")


def folders(node: NodeStorage, path: str) -> list[str]:
    return [name for name in node.disk.list_directory(path) if node.disk.is_directory(f"{path}/{name}")]


def test_partitions_are_placed_where_the_fewest_are_and_reloaded() -> None:
    node = NodeStorage()
    node.open()
    for number in range(3):
        node.create("t", number)
    assert (folders(node, "/a"), folders(node, "/b")) == (["t-0", "t-2"], ["t-1"])
    node.create("u")
    assert folders(node, "/b") == ["t-1", "u-0"]
    node.fill(TopicPartition("t", 0))
    before = node.ends()
    directories = node.reopen()
    assert node.ends() == before
    assert directories.directories[0].topic_ids[TopicPartition("t", 0)] == TOPIC_ID
    assert [d.found.broker_epoch for d in directories.directories if d.found is not None] == [7, 7]


def test_placement_counts_partitions_not_bytes() -> None:
    node = NodeStorage()
    node.open()
    node.fill(node.create("big"), 100)
    node.create("small", 0)
    node.create("small", 1)
    assert folders(node, "/a") == ["big-0", "small-1"]


def test_a_directory_can_be_requested() -> None:
    node = NodeStorage()
    directories = node.open()
    wanted = directories.directories[1].directory_id
    for number in range(2):
        run(directories.create(TopicPartition("t", number), SMALL, TOPIC_ID, directory_id=wanted))
    assert folders(node, "/b") == ["t-0", "t-1"]
    run(directories.create(TopicPartition("t", 2), SMALL, TOPIC_ID, directory_id=OTHER_TOPIC))
    assert folders(node, "/a") == ["t-2"]


def test_files_of_a_directory_are_apaches() -> None:
    node = NodeStorage(("/a",))
    node.open()
    partition = node.create("t")
    node.fill(partition, 5)
    node.close()
    assert node.disk.read_file("/a/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":7}'
    assert node.disk.read_file("/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 10\n"
    assert node.disk.read_file("/a/replication-offset-checkpoint") == b"0\n1\nt 0 10\n"
    assert node.disk.read_file("/a/log-start-offset-checkpoint") == b"0\n0\n"
    assert node.disk.read_file("/a/t-0/partition.metadata").startswith(b"version: 0\ntopic_id: ")


def test_log_start_is_checkpointed_only_inside_a_segment() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    partition = node.create("t")
    node.fill(partition)
    log = directories.find(partition)
    assert log is not None
    log.delete_records(3)
    run(node.upkeep.write_log_starts())
    assert node.disk.read_file("/a/log-start-offset-checkpoint") == b"0\n1\nt 0 3\n"
    node.crash()
    assert node.ends()["t-0"][0] == 3


def test_a_crash_is_distinguished_from_a_clean_shutdown() -> None:
    node = NodeStorage()
    node.open()
    partition = node.create("t")
    node.fill(partition)
    run(node.upkeep.write_high_watermarks())
    end = node.ends()["t-0"]
    directories = node.crash()
    assert all(directory.found is None for directory in directories.directories)
    assert node.ends()["t-0"] == end
    assert not node.disk.exists("/a/.kafka_cleanshutdown")


def test_the_clean_shutdown_file_is_removed_before_loading() -> None:
    node = NodeStorage(("/a",))
    node.open()
    node.close()
    node.open()
    assert not node.disk.crash(power_loss=True).exists("/a/.kafka_cleanshutdown")


def test_damaged_checkpoints_are_ignored_and_nothing_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    node = NodeStorage(("/a",))
    node.open()
    partition = node.create("t")
    node.fill(partition)
    end = node.ends()["t-0"][2]
    for name in ("recovery-point-offset", "replication-offset", "log-start-offset"):
        run(node.disk.replace_file(f"/a/{name}-checkpoint", b"0\n1\nt 0 9"))
    with caplog.at_level(logging.WARNING):
        node.crash()
    assert node.ends()["t-0"] == (0, 0, end)
    for name in ("recovery-point-offset", "replication-offset", "log-start-offset"):
        assert f"/a/{name}-checkpoint at byte 9: the file ends in the middle of a line" in caplog.text


def test_two_processes_cannot_share_a_directory() -> None:
    node = NodeStorage()
    node.open()
    with pytest.raises(DirectoryInUse):
        node.open()
    node.close()
    node.open()


def test_locks_are_released_when_the_start_is_refused() -> None:
    node = NodeStorage()
    run(node.disk.remove("/b/meta.properties"))
    for _ in range(2):
        with pytest.raises(WrongDirectory, match=r"/b has no meta\.properties: format it first"):
            node.open()
    node.format("/b")
    node.open()


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"node_id": 2}, "/b belongs to node 2, but this is node 1"),
        ({"cluster_id": "d"}, "/b belongs to cluster d, but /a belongs to c"),
    ],
)
def test_foreign_directory_is_refused_and_untouched(how: dict[str, object], sentence: str) -> None:
    node = NodeStorage()
    node.open()
    node.close()
    node.format("/b", **how)  # type: ignore[arg-type]  # one of the method's own
    with pytest.raises(WrongDirectory, match=sentence):
        node.open()
    assert node.disk.exists("/a/.kafka_cleanshutdown")


def test_directory_from_before_directory_ids_gets_one() -> None:
    node = NodeStorage(("/a",))
    run(write_meta_properties(node.disk, "/a", MetaProperties("c", 1), 0))
    directory_id = node.open().directories[0].directory_id
    assert directory_id is not None
    assert read_meta_properties(node.disk, "/a") == MetaProperties("c", 1, directory_id)
    assert node.reopen().directories[0].directory_id == directory_id


def test_partition_in_two_directories_is_refused() -> None:
    node = NodeStorage()
    for path in ("/a", "/b"):
        node.disk.make_directory(f"{path}/t-0")
        node.disk.open(f"{path}/t-0/00000000000000000007.log", OpenMode.CREATE)
    with pytest.raises(WrongDirectory, match="/a and /b both hold t-0"):
        node.open()


@pytest.mark.parametrize("broken", ["rename", "open"])
def test_an_empty_folder_left_by_a_failed_creation_is_removed(broken: str) -> None:
    node = NodeStorage(("/a", "/b", "/c"))
    node.open()
    node.disk.fail(broken, "/a/*", times=None)
    partition = node.create("t")
    assert (folders(node, "/a"), folders(node, "/b")) == (["t-0"], ["t-0"]), "started in /a, completed in /b"
    node.fill(partition)
    end_offset = node.ends()["t-0"][2]
    node.crash()
    assert node.ends()["t-0"][2] == end_offset
    assert (folders(node, "/a"), folders(node, "/b")) == ([], ["t-0"])


def test_unknown_folder_is_refused_unless_the_file_system_made_it() -> None:
    node = NodeStorage()
    node.disk.make_directory("/a/lost+found")
    node.disk.make_directory("/a/remote-log-index-cache")
    node.open()
    node.close()
    node.disk.make_directory("/b/t-0.bak")
    with pytest.raises(InvalidFolderName, match=r"t-0\.bak.*move the folder elsewhere"):
        node.open()


def test_metadata_log_is_not_opened_and_must_be_in_its_place() -> None:
    node = NodeStorage()
    node.disk.make_directory("/a/__cluster_metadata-0")
    assert node.open().logs == {}
    node.close()
    node.disk.make_directory("/b/__cluster_metadata-0")
    with pytest.raises(WrongDirectory, match="the metadata log belongs in /a"):
        node.open()


def test_separate_metadata_directory_gets_no_partitions() -> None:
    node = NodeStorage(("/a",))
    node.use(metadata_log_dir="/m")
    node.format("/m")
    node.open()
    node.create("t", 0)
    node.create("t", 1)
    assert folders(node, "/m") == []


def test_existing_partition_is_found_and_its_topic_checked() -> None:
    node = NodeStorage()
    directories = node.open()
    partition = node.create("t")
    log = directories.find(partition)
    assert run(directories.create(partition, SMALL, TOPIC_ID)) is log
    with pytest.raises(KafkaError, match="left from an earlier topic of that name") as refused:
        node.create("t", topic_id=OTHER_TOPIC)
    assert refused.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert directories.find(TopicPartition("nowhere", 0)) is None


def test_partition_without_a_topic_id_gets_it() -> None:
    node = NodeStorage(("/a",))
    node.disk.make_directory("/a/t-0")
    node.open()
    partition = node.create("t")
    assert node.directories.directories[0].topic_ids[partition] == TOPIC_ID
    assert node.disk.exists("/a/t-0/partition.metadata")


def test_two_requests_for_one_partition_get_one_log() -> None:
    node = NodeStorage()
    directories = node.open()

    async def both() -> list[object]:
        partition = TopicPartition("t", 0)
        return list(await asyncio.gather(*(directories.create(partition, SMALL, TOPIC_ID) for _ in range(2))))

    first, second = run(both())
    assert first is second


def test_deleted_partition_is_renamed_and_removed_after_the_delay() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    partition = node.create("t")
    node.fill(partition)
    log = directories.find(partition)
    assert log is not None
    held = log.read(0, 100).records
    assert run(directories.delete(partition))
    assert not run(directories.delete(partition))
    assert directories.find(partition) is None
    (folder,) = folders(node, "/a")
    assert folder.startswith("t-0.")
    assert folder.endswith("-delete")
    assert node.disk.read_file("/a/recovery-point-offset-checkpoint") == b"0\n0\n"
    with pytest.raises(Exception, match=r"t-0 was taken out of /a"):
        log.read(0, 100)
    assert node.upkeep.next_deadline_s == pytest.approx(1.0)
    assert run(node.upkeep.delete_due()) == 0
    node.clock.advance(1000)
    assert run(node.upkeep.delete_due()) == 1
    assert folders(node, "/a") == []
    assert held is not None
    assert len(held.read()) > 0


def test_deleted_partition_can_be_made_again_at_once_and_is_empty() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    partition = node.create("t")
    node.fill(partition)
    run(node.upkeep.write_recovery_points())
    run(directories.delete(partition))
    node.create("t", topic_id=OTHER_TOPIC)
    node.fill(partition, 2)
    run(node.upkeep.write_high_watermarks())
    node.crash()
    assert node.ends()["t-0"] == (0, 4, 4)


@pytest.mark.parametrize("power_loss", [False, True])
def test_leftovers_of_a_deletion_are_removed_at_the_start(power_loss: bool) -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    run(directories.delete(node.create("t")))
    node.crash(power_loss)
    assert folders(node, "/a") == []
    assert node.directories.logs == {}


def test_checkpoint_entries_of_vanished_partitions_are_dropped() -> None:
    node = NodeStorage(("/a",))
    for name in ("recovery-point-offset", "replication-offset", "log-start-offset"):
        run(node.disk.replace_file(f"/a/{name}-checkpoint", b"0\n1\nt 0 1000\n"))
    node.open()
    node.crash(power_loss=True)
    partition = node.create("t")
    node.fill(partition, 3)
    node.crash()
    assert node.ends()["t-0"] == (0, 0, 6)


def test_future_and_stray_folders_are_recognised() -> None:
    node = NodeStorage()
    node.disk.make_directory("/a/t-0.00000000000000000000000000000001-future")
    node.disk.make_directory("/b/t-0")
    node.disk.make_directory("/b/u-0.00000000000000000000000000000001-stray")
    directories = node.open()
    assert list(directories.directories[0].future_logs) == [TopicPartition("t", 0)]
    assert list(directories.logs) == [TopicPartition("t", 0)]
    assert directories.directories[1].stray_folders == ["u-0.00000000000000000000000000000001-stray"]
    node.reopen()
    assert len(folders(node, "/a")) == 1
    assert len(folders(node, "/b")) == 2


def test_stray_partition_is_renamed_and_keeps_its_records() -> None:
    node = NodeStorage(("/a",))
    directories = node.open()
    partition = node.create("t")
    node.fill(partition)
    assert run(directories.set_stray(partition))
    assert directories.find(partition) is None
    directories = node.reopen()
    (folder,) = directories.directories[0].stray_folders
    assert node.disk.exists(f"/a/{folder}/00000000000000000000.log")
    assert directories.logs == {}


def test_a_requested_directory_is_used_once() -> None:
    node = NodeStorage()
    directories = node.open()
    directories.wanted_in[TopicPartition("t", 0)] = "/b"
    directories.wanted_in[TopicPartition("u", 0)] = "/nowhere"
    for topic, path in (("t", "/b"), ("u", "/a")):
        directory = directories.directory_of(node.create(topic))
        assert directory is not None
        assert directory.path == path
    assert directories.wanted_in == {}


@pytest.mark.parametrize(("cordoned", "path"), [(("/a",), "/b"), (("/b",), "/a"), (("*",), "/a"), (("/a", "/b"), "/a")])
def test_cordoned_directories_get_no_partitions_unless_all_are(cordoned: tuple[str, ...], path: str) -> None:
    node = NodeStorage()
    directories = node.open()
    directories.cordon(cordoned)
    directory = directories.directory_of(node.create("t"))
    assert directory is not None
    assert directory.path == path


def test_relative_directories_are_known_by_their_full_paths() -> None:
    node = NodeStorage()
    node.use(log_dirs=("a", "./b"), metadata_log_dir="a")
    directories = node.open()
    assert [directory.path for directory in directories.placeable] == ["/a", "/b"]
    directories.cordon(["b"])
    assert [directory.path for directory in directories.placeable if directories.is_cordoned(directory)] == ["/b"]
    assert directories.directory_at("b") is None


def test_gap_is_found_again_until_the_log_is_truncated_there() -> None:
    """Neither flushes nor clean shutdowns may hide it before it is known whether the log leads."""
    node = NodeStorage(("/a",))
    partition = TopicPartition("t", 0)
    log = _log_with_a_gap(node, partition)
    end_offset = log.log_end_offset
    run(log.flush())
    run(node.directories.directories[0].write_recovery_points())
    for restart in (lambda: node.crash(power_loss=True), node.reopen, node.reopen):
        directories = restart()
        log = directories.find(partition)
        assert log is not None
        assert (log.gap_offset, log.log_end_offset) == (4, end_offset)
        assert directories.directories[0].found is None, "the controller must take the broker out of the ISR"
    run(node.directories.truncate(partition, 4))
    directories = node.reopen()
    assert directories.directories[0].found is not None
    assert node.ends()["t-0"][2] == 4


@pytest.mark.parametrize("batches", [5, 25])
def test_truncation_below_the_log_start_keeps_what_comes_next(batches: int) -> None:
    """After an unclean election. With the log start of before, a restart hid the new records, or dropped the whole log."""
    node = NodeStorage(("/a",))
    directories = node.open()
    partition = node.create("t")
    node.fill(partition)
    log = directories.find(partition)
    assert log is not None
    log.delete_records(33)
    run(directories.directories[0].write_checkpoints())
    run(directories.truncate(partition, 20))
    assert node.disk.read_file("/a/replication-offset-checkpoint") == b"0\n1\nt 0 20\n"
    node.fill(partition, batches)
    node.crash()
    start, _, end = node.ends()["t-0"]
    assert (start, end) == (20, 20 + 2 * batches)


def test_truncation_lowers_a_recovery_point_that_rose_while_it_waited() -> None:
    """A stale one lets a later recovery skip torn records below it."""
    node = NodeStorage(("/a",))
    directories = node.open()
    partition = node.create("t")
    node.fill(partition, 60)
    log = directories.find(partition)
    assert log is not None

    async def truncate() -> None:
        async with log.reshaping:  # retention or compaction is under way
            truncation = asyncio.ensure_future(directories.truncate(partition, 50))
            await asyncio.sleep(0)
            await log.flush()
            await node.upkeep.write_recovery_points()
        await truncation

    run(truncate())
    assert node.disk.read_file("/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 50\n"


def test_damage_found_by_a_truncation_is_named_and_recovered_by_the_next_start() -> None:
    """The log is half cut. It said that a bug had written to it, which stops the node, and again after every start."""
    node = NodeStorage(("/a",))
    directories = node.open()
    partition, other = node.create("t"), node.create("u")
    node.fill(partition)
    node.fill(other)
    log = directories.find(partition)
    assert log is not None
    run(log.flush())
    segment = log.segments.at(36)
    assert segment is not None
    place = segment.find(40)
    assert place is not None
    path = f"{log.folder}/{segment_file_name(36, LOG_SUFFIX)}"
    data = node.disk.read_file(path)
    file = node.disk.open(path, OpenMode.WRITE)
    file.truncate(place.position)
    file.append(bytes(100) + data[place.position + 100 :])
    for _ in range(2):
        with pytest.raises(CorruptFile, match="no batch of magic 2 begins here"):
            run(directories.truncate(partition, 48))
    with pytest.raises(CorruptFile):
        log.append_as_follower(bytes(make_batch(b"a", base_offset=48)), 0)
    directories = node.reopen()
    assert directories.directories[0].found is None
    assert node.ends()["t-0"][2] == 40
    assert node.ends()["u-0"][2] == 60
    assert run(directories.truncate(partition, 38))


def _log_with_a_gap(node: NodeStorage, partition: TopicPartition) -> PartitionLog:
    """A log whose first segment lost everything from offset 4 on."""
    log = node.open().find(node.create(partition.topic, partition.partition))
    assert log is not None
    node.fill(partition, 60)
    cut = log.segments.first.find(4)
    assert cut is not None
    file = node.disk.open(f"{log.folder}/{segment_file_name(0, LOG_SUFFIX)}", OpenMode.CREATE)
    file.truncate(cut.position)
    log = node.crash().find(partition)
    assert log is not None
    assert log.gap_offset == 4
    return log


@pytest.mark.parametrize(("is_clean", "verb"), [(True, "loading"), (False, "recovering")])
def test_progress_counts_logs_of_all_directories(is_clean: bool, verb: str) -> None:
    node = NodeStorage()
    node.open()
    for number in range(5):
        node.fill(node.create("t", number), 1)
    if is_clean:
        node.close()
    else:
        node.disk = node.disk.crash(power_loss=False)
    seen: list[str] = []

    async def load() -> None:
        world = DirectoryWorld(node.disk, node.clock, node.new_uuid, None)
        locked = await lock_directories(world, replace(node.config, num_recovery_threads_per_data_dir=1), node_id=1)
        assert not locked.progress.is_under_way

        def config_of(topic: str) -> LogConfig:
            seen.append(str(locked.progress))
            assert locked.progress.is_under_way
            return SMALL

        await locked.load(config_of)
        assert str(locked.progress) == f"{verb} 5/5 logs"
        assert not locked.progress.is_under_way

    asyncio.run(load())
    assert len(seen) == 5
    assert seen[-1] == f"{verb} 4/5 logs"
