"""A controller is removed from the voters and added again, through the requests of operators."""

import asyncio
from typing import Any

import pytest

from ottla.sim.checkers.checker import Checkers
from ottla.sim.clients.client import Stage
from ottla.sim.cluster.operator import Operator, VoterTroubles


def troubles(nodes: Any) -> VoterTroubles:
    stage = Stage(1, nodes.network, nodes.trace, Checkers([]), tuple(each.name for each in nodes.machines))
    stage.gate.set()
    return VoterTroubles(nodes.machines, Operator(stage), asyncio.Lock())


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_voter_is_removed_and_added(on_nodes: Any, is_leader: bool) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        machine = next(each for each in nodes.machines if each.leads is is_leader)
        changing = asyncio.ensure_future(troubles(nodes).change(machine, 2.0))
        await nodes.until(lambda: machine.is_out_of_voters and nodes.leader() not in (None, machine))
        assert sorted(nodes.leader().quorum.voters.ids) == sorted({1, 2, 3} - {machine.number})
        await changing
        await nodes.until(lambda: all(not each.is_out_of_voters for each in nodes.machines))
        assert not any(each.failures for each in nodes.machines)

    on_nodes(body)


def test_a_broker_alone_is_no_voter(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        await troubles(nodes).change(nodes.machines[3], 1.0)
        assert any("spared" in line for line in nodes.trace.lines)
        assert sorted(nodes.leader().quorum.voters.ids) == [1, 2, 3]

    on_nodes(body, count=4, controllers=3)
