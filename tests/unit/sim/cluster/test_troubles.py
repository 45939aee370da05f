"""Troubles of nodes: each kind happens, and every node runs again afterwards."""

from typing import Any

import pytest

from ottla.sim.checkers.checker import Checkers
from ottla.sim.clients.client import Client, Stage
from ottla.sim.cluster.plan import KINDS, ClusterPlan, Trouble, make_cluster_plan
from ottla.sim.cluster.troubles import ClusterTroubles

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
