"""Rot: only closed and flushed segments of clients' topics rot, and a damaged batch is known by its CRC."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.logs.batches import make_batch

from ottla.env import OpenMode
from ottla.errors import CorruptRecords
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.records.batch import iterate_batches
from ottla.sim.cluster.disks import cold_batches, rot
from ottla.sim.disk import MemoryDisk


def partition(disk: MemoryDisk, topic: str = "t", recovery_point: int = 10, **log: Any) -> Any:
    """A partition with a closed segment of one batch, and an active one."""
    folder = f"/data/a/{topic}-0"
    disk.make_directory(folder)
    for base_offset in (0, 10):
        disk.open(f"{folder}/{base_offset:020}.log", OpenMode.CREATE).append(make_batch(b"value"))
    settings = {"config": SimpleNamespace(compact=False), "failure": None} | log
    segments = SimpleNamespace(base_offsets=[0, 10])
    held = SimpleNamespace(folder=folder, recovery_point=recovery_point, segments=segments, **settings)
    return SimpleNamespace(name=TopicPartition(topic, 0), log=held, is_leading=True)


def machine(disk: MemoryDisk, *partitions: Any) -> Any:
    return SimpleNamespace(disk=disk, is_up=True, node=SimpleNamespace(services=SimpleNamespace(partitions=partitions)))


def test_closed_and_flushed_segments_are_cold() -> None:
    disk = MemoryDisk()
    found = list(cold_batches(machine(disk, partition(disk))))
    assert [(each.path, each.is_led) for each in found] == [("/data/a/t-0/00000000000000000000.log", True)]


@pytest.mark.parametrize(
    "other",
    [
        {"topic": OFFSETS_TOPIC},
        {"recovery_point": 9},
        {"config": SimpleNamespace(compact=True)},
        {"failure": OSError()},
    ],
)
def test_others_do_not_rot(other: dict[str, Any]) -> None:
    disk = MemoryDisk()
    assert not list(cold_batches(machine(disk, partition(disk, **other))))


def test_a_node_that_is_down_has_no_cold_segments() -> None:
    disk = MemoryDisk()
    down = machine(disk, partition(disk))
    down.is_up = False
    assert not list(cold_batches(down))


def test_rot_damages_a_batch_until_it_is_repaired() -> None:
    disk = MemoryDisk()
    node = machine(disk, partition(disk))
    (batch,) = cold_batches(node)
    before = disk.read_file(batch.path)
    repair = rot(node, batch, Random(1))
    (view,) = iterate_batches(disk.read_file(batch.path))
    with pytest.raises(CorruptRecords):
        view.check_crc()
    repair()
    assert disk.read_file(batch.path) == before
