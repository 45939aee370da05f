"""The `place` fixture: each test runs on the real and on the simulated disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.env import Disk
from ottla.env.real import RealDisk, ThreadWorkers
from ottla.sim.disk import MemoryDisk


@pytest.fixture(params=["real", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Disk, str]]:
    """A disk and an empty folder on it."""
    if request.param == "real":
        workers = ThreadWorkers(2)
        yield RealDisk(workers), str(tmp_path)
        workers.close()
    else:
        disk = MemoryDisk()
        disk.make_directory("/data")
        yield disk, "/data"
