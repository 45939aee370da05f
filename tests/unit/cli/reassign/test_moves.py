"""How far a plan is: from reassignments, descriptions of topics, and log directories."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.cli.common.connection import open_cluster
from ottla.cli.common.settings import build_settings
from ottla.client.admin.log_dirs import Replica
from ottla.client.admin.reassignments import PartitionReassignment
from ottla.client.cluster import Cluster
from ottla.client.reassignment_moves import (
    Move,
    clear_throttles,
    moves_of,
    places_of,
    status_of,
    throttled_brokers,
    throttled_replicas,
)
from ottla.client.reassignment_plan import Plan
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages import alter_replica_log_dirs as moved

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


PLAN = b'{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3],"log_dirs":["/two","any","any"]}]}'


def refuse(cluster: FakeCluster, code: int) -> None:
    result = moved.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=code)
    topic = moved.AlterReplicaLogDirTopicResult(topic_name="orders", partitions=[result])
    cluster.node.handlers[moved.AlterReplicaLogDirsRequest] = lambda request, version: moved.AlterReplicaLogDirsResponse(
        results=[topic]
    )


def test_replica_that_does_not_come(ottla: RunOttla, cluster: FakeCluster) -> None:
    refuse(cluster, ErrorCode.REPLICA_NOT_AVAILABLE)
    said = ottla("reassign", "execute", "-", "--timeout", 150, stdin=PLAN)
    assert said.rc == 1
    assert "the log directories of orders-0 on broker 1 could not be set within 150 ms" in said.err


def test_directory_that_does_not_exist(ottla: RunOttla, cluster: FakeCluster) -> None:
    refuse(cluster, ErrorCode.LOG_DIR_NOT_FOUND)
    said = ottla("reassign", "execute", "-", stdin=PLAN)
    assert said.rc == 1
    assert "LOG_DIR_NOT_FOUND" in said.err


A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_sources_and_targets_of_a_plan() -> None:
    moves = moves_of({A0: [4, 2, 3], A1: [1, 2]}, {A0: [1, 2, 3], A1: [2, 1]}, {})
    assert moves == {A0: Move(frozenset({1, 2, 3}), frozenset({4})), A1: Move(frozenset({1, 2}), frozenset())}
    assert throttled_replicas(moves) == {
        "a": {
            "leader.replication.throttled.replicas": "0:1,0:2,0:3,1:1,1:2",
            "follower.replication.throttled.replicas": "0:4",
        }
    }
    assert throttled_brokers(moves) == [1, 2, 3, 4]


def test_moves_that_are_under_way_stay_throttled() -> None:
    ongoing = {B0: PartitionReassignment((5, 1), adding=(5,), removing=(1,)), A0: PartitionReassignment((4, 1), (4,), (1,))}
    moves = moves_of({A0: [6]}, {A0: [4, 1]}, ongoing)
    assert moves == {B0: Move(frozenset({1}), frozenset({5})), A0: Move(frozenset({1}), frozenset({6}))}


def test_brokers_that_are_down_and_topics_that_are_gone_are_named(ottla: RunOttla, cluster: FakeCluster) -> None:
    notes: list[str] = []

    async def clear() -> None:
        client = open_cluster(build_settings(None, {}))
        try:
            await clear_throttles(client, [1, 9], ["orders", "gone"], frozenset({1, 2}), notes)
        finally:
            client.close()

    asyncio.run(clear())
    assert notes[0] == "broker 9 is down, and keeps its throttle: verify the plan again when it is back"
    assert notes[1].startswith("topic gone: ")
    changed = dict(cluster.settings())
    assert set(changed) == {"1", "2", "orders", "gone"}
    assert changed["1"] == dict.fromkeys(
        (
            "leader.replication.throttled.rate",
            "follower.replication.throttled.rate",
            "replica.alter.log.dirs.io.max.bytes.per.second",
        )
    )
