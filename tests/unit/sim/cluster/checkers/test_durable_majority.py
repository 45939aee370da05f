"""What a leader commits is synced on a majority of disks."""

import asyncio
from random import Random

import pytest
from tests.support.nodes.metadata_batches import logged

from ottla.env import File, OpenMode
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.quorum import DurableMajority
from ottla.sim.disk import MemoryDisk

FOLDER = "/data/a/__cluster_metadata-0"
NAMES = ("n1", "n2", "n3")


class Voters:
    """Three disks with a metadata log each."""

    def __init__(self) -> None:
        self.disks = {name: MemoryDisk(Random(1)) for name in NAMES}
        self.files: dict[str, File] = {}
        for name, disk in self.disks.items():
            disk.make_directory(FOLDER)
            self.files[name] = disk.open(f"{FOLDER}/{0:020d}.log", OpenMode.CREATE)
        self.checker = DurableMajority(lambda: self.disks, FOLDER)

    def append(self, name: str, offset: int, epoch: int = 1) -> None:
        self.files[name].append(logged(offset, epoch).view.data)

    def sync(self, *names: str) -> None:
        for name in names:
            asyncio.run(self.files[name].sync())

    def commit(self, offset: int) -> None:
        self.checker.committed("n1", 1, True, offset, [])


def test_a_synced_majority_is_enough() -> None:
    voters = Voters()
    for name in NAMES:
        voters.append(name, 0)
    voters.sync("n1", "n3")
    voters.commit(1)
    for name in NAMES:
        voters.append(name, 1)
    voters.sync("n1", "n2")
    voters.commit(2)


def test_unsynced_batches_do_not_count() -> None:
    voters = Voters()
    for name in NAMES:
        voters.append(name, 0)
    voters.sync("n1")
    with pytest.raises(Violation, match="n1 commits up to 1, and durable is: n1 up to 1, n2 up to 0, n3 up to 0"):
        voters.commit(1)


def test_a_truncated_batch_does_not_count() -> None:
    voters = Voters()
    for name in NAMES:
        voters.append(name, 0)
        voters.append(name, 1)
    voters.sync(*NAMES)
    voters.commit(2)
    for name in ("n2", "n3"):
        voters.files[name].truncate(len(logged(0, 1).view.data))
        voters.sync(name)
    with pytest.raises(Violation, match="durable is: n1 up to 2, n2 up to 1, n3 up to 1"):
        voters.commit(2)


def test_a_batch_that_was_overwritten_and_not_synced_again_counts_as_it_was() -> None:
    voters = Voters()
    voters.append("n1", 0)
    voters.append("n2", 0)
    voters.sync("n1", "n2")
    voters.files["n2"].truncate(0)
    voters.commit(1)


def test_a_synced_snapshot_counts() -> None:
    voters = Voters()
    voters.append("n1", 0)
    voters.sync("n1")
    snapshot = voters.disks["n2"].open(f"{FOLDER}/{1:020d}-{1:010d}.checkpoint", OpenMode.CREATE)
    snapshot.append(b"x")
    asyncio.run(snapshot.sync())
    voters.commit(1)


def test_a_follower_commits_what_its_leader_says() -> None:
    Voters().checker.committed("n2", 1, False, 5, [])
