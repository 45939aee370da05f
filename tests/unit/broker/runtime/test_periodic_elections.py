"""Elections at intervals: while the controller is active, again at once when there are more, and not after `stop`."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.broker.runtime.periodic_elections import PeriodicElections
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller import elections
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.wire.messages.metadata_records import ConfigRecord, PartitionChangeRecord


class Controller:
    """Commits at once. `decided` has the names of the decisions."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = ControllerCluster()
        for broker_id in (1, 2):
            self.cluster.add_broker(broker_id)
        self.decided: list[str] = []
        self.refusals = 0
        self.elections = PeriodicElections(ControllerSettings("c", 1, **settings), self.write)

    async def write(self, decide: Callable[[ControllerState, int], Decision[bool]]) -> bool:
        self.decided.append(decide.__name__)
        if self.refusals:
            self.refusals -= 1
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another one is active")
        return self.cluster.apply(decide(self.cluster.state, 0))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.001)


def test_partitions_get_preferred_and_unclean_leaders() -> None:
    async def scene() -> None:
        controller = Controller(leader_balance_interval_ms=5, unclean_election_interval_ms=5)
        cluster = controller.cluster
        topic_id = cluster.create_topic("t", assignments=[[1, 2], [2, 1]]).id
        cluster.append([PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)])
        controller.refusals = 2
        controller.elections.start()
        await controller.until(lambda: cluster.partition("t").leader == 1)
        cluster.append([PartitionChangeRecord(topic_id=topic_id, partition_id=1, leader=-1, isr=[])])
        name = "unclean.leader.election.enable"
        cluster.append([ConfigRecord(resource_type=2, resource_name="t", name=name, value="true")])
        await controller.until(lambda: cluster.partition("t", 1).leader == 2)
        controller.elections.stop()
        count = len(controller.decided)
        await asyncio.sleep(0.05)
        assert len(controller.decided) == count

    asyncio.run(scene())


def test_elections_go_on_at_once_while_there_are_more(monkeypatch: Any) -> None:
    async def scene() -> None:
        monkeypatch.setattr(elections, "ELECTIONS_AT_ONCE_MAX", 1)
        controller = Controller(leader_balance_interval_ms=1000, unclean_election_interval_ms=3_600_000)
        topic_id = controller.cluster.create_topic("t", assignments=[[1, 2]] * 3).id
        moved = [PartitionChangeRecord(topic_id=topic_id, partition_id=number, leader=2) for number in range(3)]
        controller.cluster.append(moved)
        controller.elections.start()
        await controller.until(lambda: len(controller.decided) == 4)
        assert {each.leader for each in controller.cluster.topic("t").partitions.values()} == {1}
        controller.elections.stop()

    asyncio.run(scene())


def test_leaders_are_not_balanced_if_that_is_switched_off() -> None:
    async def scene() -> None:
        controller = Controller(leader_balance_interval_ms=None, unclean_election_interval_ms=2)
        controller.elections.start()
        await controller.until(lambda: len(controller.decided) >= 5)
        controller.elections.stop()
        assert set(controller.decided) == {"elect_unclean_leaders"}

    asyncio.run(scene())
