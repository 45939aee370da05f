"""Which replicas and brokers a throttle names: as Kafka's tool does."""

import asyncio

import pytest
from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.cli.common.running import open_cluster
from ottla.cli.common.settings import build_settings
from ottla.cli.reassign.moves import Move, clear_throttles, moves_of, throttled_brokers, throttled_replicas
from ottla.client.admin.reassignments import PartitionReassignment
from ottla.ids import TopicPartition

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


def test_brokers_that_are_down_and_topics_that_are_gone_are_named(
    ottla: RunOttla, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    async def clear() -> None:
        client = open_cluster(build_settings(None, {}))
        try:
            await clear_throttles(client, [1, 9], ["orders", "gone"], frozenset({1, 2}))
        finally:
            client.close()

    asyncio.run(clear())
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "ottla: broker 9 is down, and keeps its throttle: verify the plan again when it is back"
    assert said[1].startswith("ottla: topic gone: ")
    changed = dict(cluster.settings())
    assert set(changed) == {"1", "2", "orders", "gone"}
    assert changed["1"] == dict.fromkeys(
        (
            "leader.replication.throttled.rate",
            "follower.replication.throttled.rate",
            "replica.alter.log.dirs.io.max.bytes.per.second",
        )
    )
