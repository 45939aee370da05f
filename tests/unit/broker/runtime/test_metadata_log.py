"""The metadata log: appended changes are read back, and synced records survive crashes."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from tests.support.nodes.quorum_node import DIRECTORY, FOLDER, QuorumNode, setting

from ottla.broker.runtime.metadata_log import MetadataLog, log_config
from ottla.env import File, OpenMode
from ottla.errors import BrokenInvariant, CorruptFile, LogDirectoryFailed
from ottla.ids import Uuid
from ottla.log.directories.clean_shutdown import write_clean_shutdown
from ottla.log.directories.partition_metadata import write_partition_metadata
from ottla.log.producers.append_checks import AppendOrigin
from ottla.raft.log_view import check_position, covers
from ottla.raft.snapshots import SnapshotId, build_snapshot
from ottla.records.builder import build_batch
from ottla.records.kernels import Record
from ottla.wire.log_records import encode_metadata_record
from ottla.wire.messages.metadata_records import FeatureLevelRecord, NoOpRecord, TopicRecord

SEGMENT_BYTES_MIN = "8388608"


async def opened(node: QuorumNode) -> MetadataLog:
    return await MetadataLog.open(node.world, DIRECTORY, log_config(node.config))


def values(log: MetadataLog, offset: int = 0) -> list[str]:
    return [record.value for batch in log.batches(offset) for record in batch.records]  # type: ignore[attr-defined]


def append(log: MetadataLog, *texts: str, epoch: int = 1) -> None:
    log.append(log.prepare([setting("s", text) for text in texts], 30, epoch))


def test_what_was_appended_is_read() -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        append(log, "a", "b")
        append(log, "c", epoch=2)
        batches = list(log.batches(0))
        assert [(batch.base_offset, batch.last_offset, batch.epoch) for batch in batches] == [(0, 1, 1), (2, 2, 2)]
        assert batches[0].timestamp_ms == node.clock.now_ms()
        assert values(log) == ["a", "b", "c"]
        assert values(log, 2) == ["c"]
        assert values(log, 1) == ["b", "c"], "a batch that a snapshot ends in is read from there on"
        assert values(log, 3) == []
        assert log.last_epoch == 2

    asyncio.run(run())


def test_batches_are_read_wherever_a_read_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        log = await opened(QuorumNode())
        for text in "abc":
            append(log, text)
        for size in range(1, 300):
            monkeypatch.setattr("ottla.broker.runtime.metadata_log._READ_BYTES", size)
            assert values(log) == ["a", "b", "c"], size

    asyncio.run(run())


def test_a_change_prepared_before_another_comes_too_late() -> None:
    async def run() -> None:
        log = await opened(QuorumNode())
        early = log.prepare([setting("s", "a")], 30, 1)
        append(log, "b")
        with pytest.raises(BrokenInvariant, match="too late"):
            log.append(early)
        assert values(log) == ["b"]

    asyncio.run(run())


def test_synced_records_survive_a_power_loss() -> None:
    async def run() -> None:
        for seed in range(20):
            node = QuorumNode(seed=seed)
            node.disk.make_directory(DIRECTORY)
            await node.disk.sync_directory("/")
            log = await opened(node)
            await node.disk.sync_directory(DIRECTORY)
            append(log, "a")
            append(log, "b")
            assert await log.sync() == 2
            append(log, "c")
            append(log, "d")
            node.crash()
            found = values(await opened(node))
            assert found[:2] == ["a", "b"]
            assert ["a", "b", "c", "d"][: len(found)] == found

    asyncio.run(run())


def test_a_roll_is_synced_with_the_records_before_it() -> None:
    async def run() -> None:
        node = QuorumNode({"metadata.log.segment.bytes": SEGMENT_BYTES_MIN})
        node.disk.make_directory(DIRECTORY)
        await node.disk.sync_directory("/")
        log = await opened(node)
        await node.disk.sync_directory(DIRECTORY)
        append(log, "a")
        await log.sync()
        append(log, "b")
        log.partition_log.roll()
        append(log, "c")
        assert await log.sync() == 3
        node.crash()
        log = await opened(node)
        assert values(log) == ["a", "b", "c"]
        assert len(log.partition_log.segments) == 2

    asyncio.run(run())


def test_a_device_that_fails_ends_the_log() -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        append(log, "a")
        node.disk.fail("sync", "*.log")
        with pytest.raises(LogDirectoryFailed):
            await log.sync()
        with pytest.raises(LogDirectoryFailed):
            append(log, "b")

    asyncio.run(run())


def test_the_folder_must_be_the_metadata_logs() -> None:
    async def run() -> None:
        node = QuorumNode()
        node.disk.make_directory(FOLDER)
        await write_partition_metadata(node.disk, FOLDER, Uuid(b"x" * 16))
        with pytest.raises(CorruptFile, match="topic id"):
            await opened(node)

    asyncio.run(run())


def test_a_log_that_starts_after_its_snapshots_is_refused() -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        append(log, "a", "b")
        await log.partition_log.truncate_fully_and_start_at(10)
        append(log, "c")
        await log.close()
        with pytest.raises(CorruptFile, match="starts at offset 10"):
            await opened(node)

    asyncio.run(run())


def test_log_that_ends_before_its_snapshot_starts_again_there() -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        append(log, "a", "b")
        await log.snapshots.write(SnapshotId(7, 3), 0, 0, None, [], 0)
        await log.close()
        log = await opened(node)
        assert log.end_offset == 7
        assert log.last_epoch == 3
        append(log, "c", epoch=4)
        assert values(log, 7) == ["c"]

    asyncio.run(run())


def test_follower_at_the_new_start_goes_on_while_old_snapshots_are_deleted() -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        node.disk.pause = partial(asyncio.sleep, 0)  # other tasks run during every call to the disk
        append(log, "a", "b", epoch=1)
        await log.snapshots.write(SnapshotId(2, 1), 0, 0, None, [], 0)
        log.partition_log.roll()  # a segment below the new start, which is deleted, too
        append(log, "c", "d", epoch=2)
        await log.snapshots.write(SnapshotId(4, 2), 0, 0, None, [], 0)
        log.committed(4)
        deleting = asyncio.ensure_future(log.delete_before(SnapshotId(4, 2)))
        while not deleting.done():
            assert check_position(log, 4, 2) is None
            await asyncio.sleep(0)
        assert log.start_offset == 4

    asyncio.run(run())


@pytest.mark.parametrize("is_killed", [False, True])
def test_snapshot_that_ends_where_the_log_does_replaces_its_diverged_end(is_killed: bool) -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        append(log, "a", "b", epoch=1)
        append(log, "never committed", epoch=5)
        fetched = SnapshotId(3, 3)
        assert not covers(log, fetched)
        data = build_snapshot(fetched, 0, 0, None, [], 0)
        await log.snapshots.store(fetched, 0, data, is_last=True)
        if is_killed:
            await log.close()
            log = await opened(node)
            assert not covers(log, fetched), "it has to be fetched again"
            await log.snapshots.store(fetched, 0, data, is_last=True)
        await log.start_at(fetched)
        assert (log.start_offset, log.end_offset, log.last_epoch) == (3, 3, 3)
        assert log.end_offset_for_epoch(5) == (3, 3)
        append(log, "c", epoch=6)
        await log.close()
        log = await opened(node)
        assert values(log, 3) == ["c"]
        assert log.end_offset_for_epoch(5) == (3, 3)

    asyncio.run(run())


def test_snapshot_written_while_a_later_one_is_fetched_is_removed() -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        append(log, "a", "b", epoch=1)
        is_fetched = asyncio.Event()

        async def pause() -> None:
            if asyncio.current_task() is writing:
                await is_fetched.wait()

        writing = asyncio.ensure_future(log.snapshots.write(SnapshotId(2, 1), 0, 0, None, [], 0))
        node.disk.pause = pause
        await asyncio.sleep(0)
        fetched = SnapshotId(4, 2)
        await log.snapshots.store(fetched, 0, build_snapshot(fetched, 0, 0, None, [], 0), is_last=True)
        await log.start_at(fetched)
        is_fetched.set()
        await writing
        assert log.snapshot_ids() == [fetched]
        assert check_position(log, 4, 2) is None, "a follower at the log's start goes on"
        assert [name for name in node.disk.list_directory(FOLDER) if name.endswith(".checkpoint")] == [f"{fetched}.checkpoint"]

    asyncio.run(run())


def test_a_damaged_batch_is_named() -> None:
    async def run() -> None:
        node = QuorumNode()
        log = await opened(node)
        append(log, "first")
        append(log, "second")
        file = log.partition_log.segments.active.file
        file.write_at(file.size - 3, b"?")
        with pytest.raises(CorruptFile, match="offset 1"):
            values(log)

    asyncio.run(run())


def test_records_of_every_kind_are_read_again_and_again() -> None:
    async def run() -> None:
        log = await opened(QuorumNode())
        records = [
            NoOpRecord(),
            setting("s", "a"),
            TopicRecord(name="t", topic_id=Uuid(b"t" * 16)),
            FeatureLevelRecord(name="metadata.version", feature_level=30),
        ]
        for _ in range(3):
            log.append(log.prepare(records, 30, 1))
        found = [record for batch in log.batches(0) for record in batch.records]
        assert found == records * 3

    asyncio.run(run())


def test_a_record_with_bytes_after_its_end_is_refused() -> None:
    async def run() -> None:
        log = await opened(QuorumNode())
        append(log, "a")
        assert values(log) == ["a"]
        value = encode_metadata_record(setting("s", "b"), 0) + b"?"
        data = build_batch([Record(1, 0, None, value)], leader_epoch=1)
        log.partition_log.append_as_leader(data, 1, AppendOrigin.RAFT_LEADER)
        with pytest.raises(CorruptFile, match="more bytes follow"):
            values(log)

    asyncio.run(run())


LOG = f"{FOLDER}/{0:020d}.log"


async def stopped(is_clean: bool) -> QuorumNode:
    """A node whose metadata log has three changes."""
    node = QuorumNode()
    log = await opened(node)
    for text in ("first", "second", "third"):
        log.append(log.prepare([setting("s", text)], 30, 1))
    await log.sync()
    await log.close()
    if is_clean:
        await write_clean_shutdown(node.disk, DIRECTORY, 1)
    return node


def flip(file: File) -> None:
    size = file.size // 3
    file.write_at(size + 70, bytes([file.read(size + 70, 1)[0] ^ 1]))


def shorten(file: File) -> None:
    file.truncate(file.size - 5)


def empty(file: File) -> None:
    file.truncate(0)


def append_zeros(file: File) -> None:
    file.append(bytes(100))


@pytest.mark.parametrize("damage", [flip, shorten, empty, append_zeros])
def test_damage_after_a_clean_stop_is_refused_and_left_alone(damage: Callable[[File], None]) -> None:
    async def run() -> None:
        node = await stopped(is_clean=True)
        damage(node.disk.open(LOG, OpenMode.WRITE))
        before = node.disk.read_file(LOG)
        with pytest.raises(CorruptFile, match=r"shut down cleanly.*remove /data/\.kafka_cleanshutdown"):
            await opened(node)
        assert node.disk.read_file(LOG) == before

    asyncio.run(run())


def test_without_damage_it_opens() -> None:
    async def run() -> None:
        log = await opened(await stopped(is_clean=True))
        assert log.end_offset == 3

    asyncio.run(run())


def test_the_torn_end_that_a_crash_left_is_cut_off() -> None:
    async def run() -> None:
        node = await stopped(is_clean=False)
        shorten(node.disk.open(LOG, OpenMode.WRITE))
        assert (await opened(node)).end_offset == 2

    asyncio.run(run())


def test_a_crash_in_the_first_moments_after_a_clean_stop_is_a_crash() -> None:
    async def run() -> None:
        node = await stopped(is_clean=True)
        log = await opened(node)
        log.append(log.prepare([setting("s", "fourth")], 30, 1))
        shorten(node.disk.open(LOG, OpenMode.WRITE))
        assert (await opened(node)).end_offset == 3

    asyncio.run(run())
