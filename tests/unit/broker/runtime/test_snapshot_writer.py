"""Snapshots: when they are taken, what they hold, and what is deleted after them."""

import asyncio

import pytest
from tests.support.nodes.quorum_node import FOLDER, QuorumNode

from ottla.broker.runtime import snapshot_writer
from ottla.errors import CorruptFile, LogDirectoryFailed
from ottla.raft.snapshots import SnapshotId

NAME = "log.retention.ms"
SMALL = {"metadata.log.max.record.bytes.between.snapshots": "1000"}


async def settled(node: QuorumNode) -> None:
    """Wait for a snapshot that is under way."""
    while (task := node.loader.snapshots._task) is not None:
        await asyncio.wait([task])


def checkpoints(node: QuorumNode) -> list[str]:
    return [name for name in node.files() if name.endswith(".checkpoint")]


async def started(changes: dict[str, str]) -> QuorumNode:
    node = QuorumNode(changes)
    await node.format()
    await node.start()
    return node


def test_snapshot_is_taken_by_size_and_loaded_at_the_next_start() -> None:
    async def run() -> None:
        node = await started(SMALL)
        for number in range(30):
            await node.set(NAME, str(number))
            await settled(node)
        latest = node.quorum.log.snapshots.latest
        assert latest is not None
        assert latest.offset > 10
        assert latest.epoch == 1
        image = node.loader.published
        await node.close()
        await node.start()
        assert node.settings() == {NAME: "29"}
        assert node.published[-2].features == image.features
        assert node.published[-2].cluster == image.cluster
        assert dict(next(iter(node.quorum.voters)).endpoints) == {"CONTROLLER": ("localhost", 9093)}

    asyncio.run(run())


def test_snapshot_is_taken_after_the_interval_if_records_came() -> None:
    async def run() -> None:
        node = await started({"metadata.log.max.snapshot.interval.ms": "60000"})
        await node.set(NAME, "1")
        await settled(node)
        assert len(checkpoints(node)) == 1, "the one that formatting made"
        node.clock.advance(61_000)
        await settled(node)
        assert len(checkpoints(node)) == 1, "nothing happened since"
        await node.set(NAME, "2")
        await settled(node)
        assert len(checkpoints(node)) == 2

    asyncio.run(run())


def test_the_interval_can_be_turned_off() -> None:
    async def run() -> None:
        node = await started({"metadata.log.max.snapshot.interval.ms": "0"})
        node.clock.advance(10**9)
        await node.set(NAME, "2")
        await settled(node)
        assert len(checkpoints(node)) == 1

    asyncio.run(run())


def test_retention_by_size_deletes_old_snapshots_and_the_log_below(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        monkeypatch.setattr(snapshot_writer, "ROLL_BYTES", 1)
        node = await started(SMALL | {"metadata.max.retention.bytes": "4000"})
        for number in range(100):
            await node.set(NAME, str(number))
            await settled(node)
        log = node.quorum.log
        assert log.partition_log.log_start_offset > 0
        assert log.snapshots.ids[0].offset <= log.partition_log.log_start_offset
        assert len(checkpoints(node)) == len(log.snapshots.ids) < 10
        await node.close()
        await node.start()
        assert node.settings() == {NAME: "99"}
        node.crash()
        await node.start()
        assert node.settings() == {NAME: "99"}

    asyncio.run(run())


def test_retention_by_age_keeps_the_last_snapshot() -> None:
    async def run() -> None:
        node = await started({"metadata.log.max.snapshot.interval.ms": "1000", "metadata.max.retention.ms": "100000"})
        for number in range(5):
            node.clock.advance(50_000)
            await node.set(NAME, str(number))
            await settled(node)
        ages = [node.clock.now_ms() - node.quorum.log.snapshots.timestamp_ms(each) for each in node.quorum.log.snapshots.ids]
        assert ages == [100_000, 50_000, 0]
        node.clock.advance(10**9)
        await node.set(NAME, "9")
        await settled(node)
        assert len(node.quorum.log.snapshots.ids) == 1

    asyncio.run(run())


def test_long_start_takes_a_snapshot_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        monkeypatch.setattr(snapshot_writer, "ROLL_BYTES", 1)
        node = await started({})
        await node.set(NAME, "1")
        await node.close()
        monkeypatch.setattr(snapshot_writer, "START_BYTES_MAX", 100)
        await node.start()
        await settled(node)
        assert len(checkpoints(node)) == 2
        assert node.quorum.log.partition_log.segments.active.size == 0
        await node.close()
        await node.start()
        await settled(node)
        assert len(checkpoints(node)) == 2
        assert node.settings() == {NAME: "1"}

    asyncio.run(run())


def test_leftovers_are_removed_at_a_start() -> None:
    async def run() -> None:
        node = await started({})
        await node.close()
        for name in ("00000000000000000003-0000000001.checkpoint.part", "00000000000000000003-0000000001.checkpoint.deleted"):
            await node.disk.replace_file(f"{FOLDER}/{name}", b"half of it")
        await node.start()
        assert len([name for name in node.files() if ".checkpoint" in name]) == 1

    asyncio.run(run())


def test_a_damaged_snapshot_is_refused() -> None:
    async def run() -> None:
        node = await started({})
        await node.loader.snapshots.write(node.loader.published)
        await node.close()
        latest = node.quorum.log.snapshots.latest
        assert latest is not None
        path = node.quorum.log.snapshots.path(latest)
        await node.disk.replace_file(path, node.disk.read_file(path)[:-10])
        with pytest.raises(CorruptFile, match=str(latest)):
            await node.start()

    asyncio.run(run())


def test_the_same_snapshot_is_not_written_twice() -> None:
    async def run() -> None:
        node = await started({})
        writer = node.loader.snapshots
        await writer.write(node.loader.published)
        replaced = node.disk.counts["rename"]
        await writer.write(node.loader.published)
        assert node.disk.counts["rename"] == replaced
        assert node.quorum.log.snapshots.latest == SnapshotId(node.quorum.end_offset, 1)

    asyncio.run(run())


def test_snapshot_that_cannot_be_written_stops_the_node() -> None:
    async def run() -> None:
        node = await started(SMALL)
        node.disk.fail("append", f"{FOLDER}/*.part")
        for number in range(30):
            if node.quorum.failure.done():
                break
            await node.set(NAME, str(number))
            await settled(node)
        assert isinstance(node.quorum.failure.result(), LogDirectoryFailed)
        await node.close()

    asyncio.run(run())


def test_writes_go_on_while_a_snapshot_is_written() -> None:
    async def run() -> None:
        node = await started({})
        writer = node.loader.snapshots
        released = asyncio.Event()
        syncs = 0

        async def pause() -> None:
            nonlocal syncs
            syncs += 1
            if syncs == 1:
                await released.wait()

        await node.quorum.log.partition_log.flush()
        node.disk.pause = pause
        snapshot = asyncio.ensure_future(writer.write(node.loader.published))
        await asyncio.sleep(0)
        await node.set(NAME, "1")
        assert not snapshot.done()
        released.set()
        await snapshot
        await node.set(NAME, "2")
        node.disk.pause = None
        await node.close()
        await node.start()
        assert node.settings() == {NAME: "2"}

    asyncio.run(run())
