"""Starting a node's metadata: what a start waits for, and which reason a failed one gives."""

import asyncio

import pytest
from tests.support.nodes.quorum_node import FOLDER, QuorumNode

from ottla.broker.hosts.starting import start_metadata
from ottla.errors import LogDirectoryFailed


def test_start_returns_when_the_first_records_are_published() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()
        await node.start()
        assert node.controller.is_active
        assert node.loader.published_offset == node.quorum.end_offset
        assert 1 in node.loader.published.cluster.controllers
        await node.close()

    asyncio.run(run())


@pytest.mark.parametrize("skip", [0, 1], ids=["before the controller is active", "before its records are committed"])
def test_failed_sync_ends_the_start_with_its_reason(skip: int) -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()
        await node.open()
        sync, syncs = node.quorum.log.sync, 0

        async def fail_later() -> int:
            nonlocal syncs
            syncs += 1
            if syncs > skip:
                node.disk.fail("sync", f"{FOLDER}/*.log")
            return await sync()

        node.quorum.log.sync = fail_later  # type: ignore[method-assign]
        with pytest.raises(LogDirectoryFailed):
            await start_metadata(node.quorum, node.loader, node.controller, ())
        await node.loader.close()

    asyncio.run(run())
