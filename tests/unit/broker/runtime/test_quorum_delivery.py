"""Committed batches reach the listener once, in order, from the log and from memory; a snapshot replaces what was before."""

import asyncio
from collections.abc import Sequence

from tests.support.nodes.quorum_node import QuorumNode, setting

from ottla.broker.runtime.metadata_log import MetadataBatch
from ottla.broker.runtime.quorum_delivery import Delivery
from ottla.raft.snapshots import SnapshotContent, SnapshotId


async def logged(count: int) -> QuorumNode:
    """A node whose log ends at `3 + count`, with the leader's three records first."""
    node = QuorumNode()
    await node.format()
    await node.open()
    list(node.quorum.load())
    await node.quorum.elect()
    for number in range(count):
        node.quorum.append(node.quorum.prepare([setting("n", str(number))], 30))
    return node


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_batches_from_the_log_and_from_memory_come_once_and_in_order() -> None:
    async def run() -> None:
        node = await logged(5)
        batches = list(node.quorum.log.batches(0))
        delivery = Delivery(node.quorum.log)
        for batch in batches[3:]:
            delivery.appended(batch)
        got: list[int] = []

        async def committed(found: Sequence[MetadataBatch]) -> None:
            got.extend(batch.base_offset for batch in found)

        task = asyncio.create_task(delivery.run(committed, None))
        delivery.committed(6)
        await settle()
        assert got == [0, 3, 4, 5], "nothing above the high watermark"
        delivery.committed(8)
        await settle()
        assert got == [0, 3, 4, 5, 6, 7]
        assert delivery.passed_on == 8
        task.cancel()

    asyncio.run(run())


def test_truncated_batches_are_forgotten() -> None:
    async def run() -> None:
        node = await logged(3)
        delivery = Delivery(node.quorum.log)
        for batch in node.quorum.log.batches(0):
            delivery.appended(batch)
        delivery.truncated(4)
        delivery.committed(4)
        assert [batch.base_offset for batch in delivery._take()] == [0, 3]
        assert delivery._take() == []

    asyncio.run(run())


def test_snapshot_comes_before_the_batches_after_it() -> None:
    async def run() -> None:
        node = await logged(3)
        snapshot_id = SnapshotId(4, 1)
        await node.quorum.log.snapshots.write(snapshot_id, 0, 0, None, [], 0)
        delivery = Delivery(node.quorum.log)
        got: list[object] = []

        async def committed(found: Sequence[MetadataBatch]) -> None:
            got.extend(batch.base_offset for batch in found)

        async def loaded(found: SnapshotId, content: SnapshotContent) -> None:
            got.append(found)

        delivery.snapshot_loaded(snapshot_id)
        delivery.committed(6)
        task = asyncio.create_task(delivery.run(committed, loaded))
        await settle()
        assert got == [snapshot_id, 4, 5]
        task.cancel()

    asyncio.run(run())
