"""Troubles of disks: a wiped node comes back if the others have everything, and a node with a full disk stops and returns."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.watched_partitions import image, state

from ottla.env import OpenMode
from ottla.errors import CorruptRecords
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.topics import PartitionState
from ottla.records.batch import iterate_batches
from ottla.sim.checkers.checker import Checkers
from ottla.sim.clients.client import Stage
from ottla.sim.cluster.checkers.quorum import CommittedLog
from ottla.sim.cluster.disks import DiskTroubles, Safekeeping, cold_batches, rot
from ottla.sim.disk import MemoryDisk


def troubles(nodes: Any, log: CommittedLog, safekeeping: Safekeeping | None = None) -> DiskTroubles:
    stage = Stage(1, nodes.network, nodes.trace, Checkers([]), ("n1", "n2", "n3"))
    return DiskTroubles(nodes.machines, stage, safekeeping or Safekeeping(), lambda: log.end_offset, lambda *_: True)


def events(nodes: Any, name: str) -> list[str]:
    return [line for line in nodes.trace.lines if f" {name} " in f"{line} "]


@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("is_leader", [True, False])
def test_a_wiped_node_comes_back_with_all_metadata_and_votes(on_nodes: Any, is_static: bool, is_leader: bool) -> None:
    log = CommittedLog()

    async def body(nodes: Any) -> None:
        await nodes.start()
        leader = nodes.leader()
        machine = leader if is_leader else next(each for each in nodes.machines if each is not leader)
        before = machine.quorum.local
        await troubles(nodes, log).wipe(machine, 0.5)
        assert (machine.wipes, machine.lives) == (1, 2)
        await nodes.until(lambda: machine.is_up and machine.quorum.is_voter and nodes.leader() is not None)
        await nodes.until(lambda: machine.image.provenance.offset == nodes.leader().image.provenance.offset)
        assert machine.quorum.local.id == before.id
        assert machine.quorum.local.directory_id != before.directory_id
        assert not any(each.failures for each in nodes.machines)

    on_nodes(body, log, is_static=is_static)


@pytest.mark.parametrize(("others_have", "is_wiped"), [(95, True), (92, False)])
def test_no_node_is_wiped_whose_last_fetch_may_commit_what_others_lack(others_have: int, is_wiped: bool) -> None:
    def controller(number: int, synced_offset: int) -> Any:
        log = SimpleNamespace(last_epoch=1)
        quorum = SimpleNamespace(epoch=1, has_leader=True, synced_offset=synced_offset, log=log)
        return SimpleNamespace(
            number=number, is_controller=True, is_up=True, is_lost=False, is_out_of_voters=False, quorum=quorum
        )

    machines = [controller(1, 97), controller(2, 95), controller(3, others_have)]
    stage: Any = SimpleNamespace(seed=1)
    found = DiskTroubles(machines, stage, Safekeeping(), lambda: 92, lambda *_: True)
    assert found.may_lose(machines[1]) is is_wiped
    machines[2].quorum.log.last_epoch = 0  # it is as long, with records that nobody else has
    assert not found.may_lose(machines[1])


def test_the_last_replica_in_sync_is_not_wiped(on_nodes: Any) -> None:
    log, safekeeping = CommittedLog(), Safekeeping()
    safekeeping.image_committed(MetadataImage(), image(state((1,)), {1: 10, 2: 20, 3: 30}))

    async def body(nodes: Any) -> None:
        await nodes.start()
        await troubles(nodes, log, safekeeping).wipe(nodes.machines[0], 0.5)
        assert nodes.machines[0].wipes == 0
        await troubles(nodes, log, safekeeping).wipe(nodes.machines[1], 0.5)
        assert nodes.machines[1].wipes == 1

    on_nodes(body, log)


def test_a_node_with_a_full_disk_stops_and_comes_back(on_nodes: Any) -> None:
    log = CommittedLog()

    async def body(nodes: Any) -> None:
        await nodes.start()
        machine, other = nodes.leader(), next(each for each in nodes.machines if not each.leads)
        other.kill()  # the controller has to write that it is fenced
        await troubles(nodes, log).full(machine, 3.0)
        assert events(nodes, "gives up")
        other.start()
        await nodes.until(lambda: all(each.is_up for each in nodes.machines) and nodes.leader() is not None)
        assert machine.lives == 2
        assert not any(each.failures for each in nodes.machines)

    on_nodes(body, log)


EPOCHS = {1: 10, 2: 20, 3: 30}


def keeping(partition: PartitionState, epochs: dict[int, int] | None = None) -> Safekeeping:
    found = Safekeeping()
    found.image_committed(MetadataImage(), image(partition, epochs or EPOCHS))
    return found


@pytest.mark.parametrize(
    ("partition", "ending", "loses_writes", "may"),
    [
        (state((1, 2)), {1}, True, True),
        (state((1, 2)), {3}, True, True),
        (state((1, 2)), {1, 2}, True, False),
        (state((1, 2)), {1, 2, 3}, False, True),
        (state((1,)), {1}, True, False),
        (state((1,), elr=(2,)), {1}, True, True),
        (state((), elr=(), last_known_elr=(3,)), {3}, True, False),
        (state((), elr=(2,), last_known_elr=(3,)), {2}, False, False),
        (state((), elr=(2, 3), last_known_elr=(3,)), {2, 3}, False, True),
    ],
)
def test_one_of_those_that_could_lead_stays(partition: PartitionState, ending: set[int], loses_writes: bool, may: bool) -> None:
    assert keeping(partition).may_end(ending, loses_writes) is may


def test_an_unclean_end_counts_until_the_broker_is_registered_again() -> None:
    found = keeping(state((1, 2)))
    found.note_end(1, loses_writes=True)
    assert not found.may_end({2}, loses_writes=True)
    assert not found.may_end({2}, loses_writes=False), "the controller could not tell which of them has the records"
    found.image_committed(MetadataImage(), image(state((2,), elr=(1,)), EPOCHS | {1: 11}))
    assert found.may_end({2}, loses_writes=True)


def test_killed_brokers_may_all_end() -> None:
    found = keeping(state((1, 2)))
    found.note_end(1, loses_writes=False)
    assert found.may_end({2}, loses_writes=False)
    assert not found.may_end({2}, loses_writes=True)


def test_a_decision_that_is_not_committed_yet_counts() -> None:
    found = keeping(state((1, 2)))
    assert found.may_end({1}, loses_writes=True)
    found.appended("n1", 7, image(state((1,)), EPOCHS))
    assert not found.may_end({1}, loses_writes=True)
    committed = image(state((1, 2)), EPOCHS)
    found.image_committed(MetadataImage(), committed._replace(provenance=Provenance(6, 2, 0)))
    assert not found.may_end({1}, loses_writes=True)
    found.image_committed(MetadataImage(), committed._replace(provenance=Provenance(7, 2, 0)))
    assert found.may_end({1}, loses_writes=True), "another change has its place in the log"


def test_a_broker_that_shuts_down_leaves_the_isr_to_the_others() -> None:
    found = keeping(state((1, 2, 3)))
    with found.stopping(3):
        assert found.may_end({1}, loses_writes=True)
        found.note_end(1, loses_writes=True)
        assert not found.may_end({2}, loses_writes=True)
    assert found.may_end({2}, loses_writes=True), "it has stopped, and is still in the ISR: it has the records"
    found.note_end(2, loses_writes=True)
    assert not found.may_end({3}, loses_writes=False)


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
