"""Troubles of nodes: each kind happens, and every node runs again afterwards."""

import asyncio
from contextvars import copy_context
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.watched_partitions import held, image, state

from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Checkers
from ottla.sim.clients.client import Client, Stage
from ottla.sim.cluster.plan import KINDS, ClusterPlan, Trouble, make_cluster_plan
from ottla.sim.cluster.troubles import ClusterTroubles, Joins, JoinTroubles
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork

EVENTS = {
    "kill": "kill",
    "crash": "crash in",
    "power": "power loss",
    "power crash": "power loss",
    "stop": "stop",
    "pause": "pause",
    "storm": "storm",
    "kill all": "kill",
}
"""Kind → the event that the trace has of it, if it is not called the same."""


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_a_node_serves_again_after(on_nodes: Any, kind: str) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        trouble = Trouble(kind, at_s=0.1, length_s=1.2, is_aimed=True, node=0, changes=2)
        base = make_cluster_plan(1).base
        plan = ClusterPlan(base, 3, is_static=False, rates=(1.0,) * 3, troubles=(trouble,))
        stage = Stage(1, nodes.network, nodes.trace, Checkers([]), ("n1", "n2", "n3"))
        await ClusterTroubles(plan, nodes.machines, nodes.network, stage, [Client(stage, "c")]).run()
        assert any(EVENTS.get(kind, kind) in line for line in nodes.trace.lines)
        await nodes.until(lambda: all(machine.is_up for machine in nodes.machines) and nodes.leader() is not None)
        assert not any(machine.failures for machine in nodes.machines)

    on_nodes(body)


class Machines:
    """Three machines; the first has the active controller."""

    def __init__(self) -> None:
        self.all: list[Any] = [SimpleNamespace(name=f"n{n}", number=n, leads=n == 1) for n in (1, 2, 3)]
        self.network, self.joins = SimNetwork(Random(1)), Joins()
        self.proposed_s = 0.0
        self.register(30)
        self.power_losses: list[tuple[str, bool]] = []
        self.troubles = JoinTroubles(self.all, self.network, self.joins, Random(1), self.lose_power)

    async def lose_power(self, machine: Any) -> None:
        self.power_losses.append((machine.name, self.network.is_parted("n2", "n3")))
        if len(self.power_losses) == 1:
            asyncio.get_running_loop().call_later(1, self.propose)
        else:
            asyncio.get_running_loop().call_later(1, self.register, 31)

    def propose(self) -> None:
        self.joins.isr_proposed("n2", held(isr=(1, 2, 3)), (1, 2))  # drops one
        self.joins.isr_proposed("n2", held(isr=(1, 2)), (1, 2, 3))
        self.joins.delayed["n2"].append((copy_context(), self.note_proposal))

    def note_proposal(self) -> None:
        self.proposed_s = asyncio.get_running_loop().time()

    def register(self, epoch: int) -> None:
        self.joins.image_committed(MetadataImage(), image(state(), {3: epoch}))


def test_a_stale_join_loses_power_while_the_proposal_is_delayed() -> None:
    async def run() -> None:
        machines = Machines()
        await machines.troubles.stale_join(machines.all[2])
        assert machines.power_losses == [("n3", False), ("n3", True)]
        assert machines.joins.delayed == {}
        assert machines.proposed_s >= 2.0, "after the registration"
        assert not machines.network.is_parted("n2", "n3")

    VirtualLoop(60).run(run())


def test_a_lonely_leader_reaches_clients_alone() -> None:
    async def run() -> None:
        machines = Machines()
        lonely = asyncio.ensure_future(machines.troubles.lonely_leader(machines.all[1]))
        await asyncio.sleep(0.1)
        assert [machines.network.is_parted("n2", other) for other in ("n1", "n3", "p0")] == [True, True, False]
        await lonely
        assert not machines.network.is_parted("n2", "n1")

    VirtualLoop(60).run(run())
