"""How far a plan is: from reassignments, descriptions of topics, and log directories."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.cli.common.running import open_cluster
from ottla.cli.common.settings import build_settings
from ottla.cli.reassign.moves import places_of, status_of
from ottla.cli.reassign.plan import Plan
from ottla.client.admin.log_dirs import Replica
from ottla.client.cluster import Cluster
from ottla.ids import TopicPartition

T = TypeVar("T")
FIRST, SECOND, GONE = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("gone", 0)


def ask(work: Callable[[Cluster], Awaitable[T]]) -> T:
    async def run() -> T:
        client = open_cluster(build_settings(None, {}))
        try:
            return await work(client)
        finally:
            client.close()

    return asyncio.run(run())


def test_states_of_partitions(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing = {1: ([4, 3, 1, 2], [4], [2])}
    status = ask(lambda client: status_of(client, Plan({FIRST: [1, 2, 3], SECOND: [4, 3, 1], GONE: [1]}, {})))
    assert {str(each): found.state for each, found in status.partitions.items()} == {
        "gone-0": "elsewhere",
        "orders-0": "completed",
        "orders-1": "in progress",
    }
    assert status.partitions[SECOND].adding == (4,)
    assert (status.is_done, status.is_moving) == (False, True)
    order = ask(lambda client: status_of(client, Plan({FIRST: [2, 1, 3]}, {})))
    assert order.partitions[FIRST].state == "elsewhere", "another preferred leader is another assignment"


def test_states_of_directories(ottla: RunOttla, cluster: FakeCluster) -> None:
    plan = Plan({FIRST: [1, 2, 3]}, {Replica("orders", 0, 1): "/one", Replica("orders", 7, 2): "/one"})
    status = ask(lambda client: status_of(client, plan))
    assert [each.state for each in status.directories.values()] == ["completed", "missing"]
    cluster.futures = {1: "/two"}
    moving = ask(lambda client: status_of(client, Plan({FIRST: [1, 2, 3]}, {Replica("orders", 0, 1): "/two"})))
    assert [each.state for each in moving.directories.values()] == ["in progress"]
    assert moving.is_moving


def test_places_of_brokers_that_are_up(ottla: RunOttla, cluster: FakeCluster) -> None:
    assert ask(lambda client: places_of(client, {FIRST: [1, 2, 9]}, [1, 2])) == {
        Replica("orders", 0, 1): "/one",
        Replica("orders", 0, 2): "/one",
    }
