"""After a clean shutdown a damaged metadata log is refused and left as it is; after a crash its torn end is cut off."""

import asyncio
from collections.abc import Callable

import pytest
from tests.support.nodes.quorum_node import DIRECTORY, FOLDER, QuorumNode, setting

from ottla.broker.runtime.metadata_log import MetadataLog, log_config
from ottla.env import File, OpenMode
from ottla.errors import CorruptFile
from ottla.log.directories.clean_shutdown import write_clean_shutdown

LOG = f"{FOLDER}/{0:020d}.log"


async def opened(node: QuorumNode) -> MetadataLog:
    return await MetadataLog.open(node.world, DIRECTORY, log_config(node.config))


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
