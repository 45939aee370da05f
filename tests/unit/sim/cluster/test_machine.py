"""Machines of a simulated cluster: they form it, lose nodes, and get them back."""

from typing import Any

import pytest

from ottla.ids import TopicPartition
from ottla.sim.checkers.checker import Checkers
from ottla.sim.clients.client import Stage
from ottla.sim.clients.consumer import open_consumer
from ottla.sim.clients.group_client import GroupClient


@pytest.mark.parametrize("is_static", [True, False])
def test_three_machines_form_a_cluster(on_nodes: Any, is_static: bool) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        await nodes.until(lambda: all(len(machine.image.cluster.brokers) == 3 for machine in nodes.machines))
        assert [machine.leads for machine in nodes.machines].count(True) == 1

    on_nodes(body, is_static=is_static)


def test_another_leads_while_the_leader_is_paused_and_a_killed_node_returns(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        first = nodes.leader()
        first.pause()
        others = [machine for machine in nodes.machines if machine is not first]
        await nodes.until(lambda: any(machine.leads for machine in others))
        assert not first.is_up
        first.resume()
        await nodes.until(lambda: first.is_up and not first.leads)
        second = nodes.leader()
        second.kill()
        assert not second.is_alive
        await nodes.until(lambda: nodes.leader() not in (None, second))
        second.start()
        await nodes.until(lambda: second.is_up)
        assert second.lives == 2

    on_nodes(body)


def test_a_node_stops_cleanly_without_a_quorum(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        for machine in nodes.machines:
            await machine.stop()
            assert not machine.is_alive
            assert not machine.failures

    on_nodes(body)


def test_five_machines_of_which_three_are_controllers(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        await nodes.until(lambda: all(len(machine.image.cluster.brokers) == 5 for machine in nodes.machines))
        assert [machine.quorum.is_voter for machine in nodes.machines] == [True] * 3 + [False] * 2
        assert not any(machine.is_out_of_voters for machine in nodes.machines)

    on_nodes(body, count=5, controllers=3)


def test_a_group_has_another_shard_after_each_load_and_none_meanwhile(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        await nodes.start()
        assert [machine.serving_shard("g") for machine in nodes.machines] == [None] * 3, "nobody has asked for a coordinator"
        stage = Stage(1, nodes.network, nodes.trace, Checkers([]), ("n1", "n2", "n3"))
        stage.gate.set()
        consumer = open_consumer(GroupClient(stage, "c0", "g"), group_id="g")
        await consumer.committed([TopicPartition("t", 0)])
        (machine,) = [each for each in nodes.machines if each.serving_shard("g") is not None]
        first = machine.serving_shard("g")
        assert machine.serving_shard("g") is first
        first.give_up()
        assert machine.serving_shard("g") is None
        await nodes.until(lambda: machine.serving_shard("g") is not None)
        assert machine.serving_shard("g") is not first
        machine.kill()
        machine.start()
        assert machine.serving_shard("g") is None, "the shard of its last life"
        await consumer.close()

    on_nodes(body)
