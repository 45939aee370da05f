"""Starting a node's metadata: what a start waits for, and which reason a failed one gives."""

import asyncio

import pytest
from tests.support.nodes.quorum_node import FOLDER, QuorumNode

from ottla.broker.runtime.start import StartGivenUp, start_metadata, unless_given_up
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


def test_a_wait_for_other_nodes_ends_when_it_is_given_up() -> None:
    async def run() -> None:
        given_up, is_cancelled = asyncio.Event(), False

        async def wait_forever() -> None:
            nonlocal is_cancelled
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                is_cancelled = True
                raise

        waiting = asyncio.ensure_future(unless_given_up(wait_forever(), given_up))
        await asyncio.sleep(0)
        assert not waiting.done()
        given_up.set()
        with pytest.raises(StartGivenUp, match="told to stop"):
            await asyncio.wait_for(waiting, 30)
        assert is_cancelled

    asyncio.run(run())


def test_a_wait_that_ends_gives_its_result_or_its_error() -> None:
    async def seven() -> int:
        return 7

    async def fail() -> int:
        raise LogDirectoryFailed("/d", OSError("broken"))

    async def run() -> None:
        for given_up in (None, asyncio.Event()):
            assert await unless_given_up(seven(), given_up) == 7
            with pytest.raises(LogDirectoryFailed):
                await unless_given_up(fail(), given_up)

    asyncio.run(run())
