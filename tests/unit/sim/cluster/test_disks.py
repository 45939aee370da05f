"""Troubles of disks: a wiped node comes back if the others have everything, and a node with a full disk stops and returns."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.watched_partitions import image, state

from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Checkers
from ottla.sim.clients.client import Stage
from ottla.sim.cluster.checkers.quorum import CommittedLog
from ottla.sim.cluster.disks import DiskTroubles, Safekeeping


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


def test_no_node_is_wiped_while_another_controller_is_down(on_nodes: Any) -> None:
    log = CommittedLog()

    async def body(nodes: Any) -> None:
        await nodes.start()
        nodes.machines[2].kill()
        await troubles(nodes, log).wipe(nodes.machines[0], 0.5)
        assert nodes.machines[0].wipes == 0
        assert events(nodes, "spared")

    on_nodes(body, log)


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
