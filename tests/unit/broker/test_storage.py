"""Closing the directories of a node: with the mark of a clean shutdown, or without."""

import asyncio
from typing import Any

import pytest

from ottla.broker.storage import Storage


class Fake:
    def __init__(self) -> None:
        self.closed: list[int] = []
        self.released = 0

    async def close(self, epoch: int) -> None:
        self.closed.append(epoch)

    def release(self) -> None:
        self.released += 1


@pytest.mark.parametrize(
    ("is_loaded", "is_trusted", "closed", "released"),
    [(True, True, [7], 0), (True, False, [], 1), (False, True, [], 1)],
    ids=["clean", "broken invariant", "controller alone"],
)
def test_only_trusted_logs_get_the_mark(is_loaded: bool, is_trusted: bool, closed: list[int], released: int) -> None:
    directories: Any = Fake()
    storage = Storage(directories)
    storage.directories = directories if is_loaded else None
    asyncio.run(storage.close(7, is_trusted))
    assert (directories.closed, directories.released) == (closed, released)
