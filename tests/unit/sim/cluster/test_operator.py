"""Operators: requests that are repeated, voters removed and added, lost nodes replaced."""

import asyncio
from typing import Any

import pytest
from tests.support.nodes.watched_partitions import image, state

from ottla.client.admin.topics import NewTopic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Checkers, Violation
from ottla.sim.clients.client import Stage
from ottla.sim.cluster.checkers.quorum import CommittedLog, Images
from ottla.sim.cluster.disks import DiskTroubles, Safekeeping
from ottla.sim.cluster.operator import CHANGE_S_MAX, Operator, Replacements, VoterTroubles

DONE_ALREADY = ErrorCode.VOTER_NOT_FOUND


def asked(on_nodes: Any, *answers: ErrorCode) -> int:
    """How often a request is sent that gets these answers; the last one again and again."""
    calls: list[ErrorCode] = []

    async def call() -> None:
        calls.append(answers[min(len(calls), len(answers) - 1)])
        if calls[-1] != ErrorCode.NONE:
            raise KafkaError(calls[-1], "no")

    async def body(nodes: Any) -> None:
        operator = Operator(Stage(1, nodes.network, nodes.trace, Checkers([]), ("n1", "n2", "n3")))
        begun_s = asyncio.get_running_loop().time()
        try:
            await operator.make("removes n1", call, DONE_ALREADY)
        finally:
            assert asyncio.get_running_loop().time() - begun_s < CHANGE_S_MAX + 1

    on_nodes(body)
    return len(calls)


def test_a_refused_request_is_repeated(on_nodes: Any) -> None:
    assert asked(on_nodes, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.NONE) == 3


def test_a_change_that_was_made_already_is_not_asked_for_again(on_nodes: Any) -> None:
    assert asked(on_nodes, ErrorCode.REQUEST_TIMED_OUT, DONE_ALREADY) == 2


def test_a_change_that_is_never_made_is_a_violation(on_nodes: Any) -> None:
    with pytest.raises(Violation, match=r"operator removes n1: refused for 60 s"):
        asked(on_nodes, ErrorCode.REQUEST_TIMED_OUT)


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


class Troubles:
    """Replacements on these nodes, with what decides on them."""

    def __init__(self, nodes: Any, log: CommittedLog, images: Images, safekeeping: Safekeeping | None = None) -> None:
        self.stage = Stage(1, nodes.network, nodes.trace, Checkers([]), tuple(each.name for each in nodes.machines))
        self.stage.gate.set()
        self.operator, turn = Operator(self.stage), asyncio.Lock()
        disks = DiskTroubles(
            nodes.machines, self.stage, safekeeping or Safekeeping(), lambda: log.end_offset, lambda *_: True, turn
        )
        self.replacements = Replacements(
            nodes.machines, self.operator, lambda: images.newest, disks.may_lose, lambda *_: True, turn
        )

    async def create_topic(self, replicas: list[int]) -> None:
        admin = self.operator.admin()
        assert not (await admin.create_topics([NewTopic("t", replicas=[replicas])])).errors
        await admin.close()


@pytest.mark.parametrize("is_leader", [True, False])
@pytest.mark.parametrize("seed", [1, 2], ids=["it_joins_by_itself", "it_is_added"])
def test_a_lost_controller_is_replaced_by_one_with_another_id(on_nodes: Any, is_leader: bool, seed: int) -> None:
    log, images = CommittedLog(), Images()

    async def body(nodes: Any) -> None:
        await nodes.start()
        troubles = Troubles(nodes, log, images)
        troubles.replacements._random.seed(seed)  # decides who adds the new voter
        await troubles.create_topic([1, 2, 3])
        lost = next(each for each in nodes.machines if each.leads is is_leader)
        before = lost.quorum.local
        await troubles.replacements.replace(lost, 0.5)
        new = nodes.machines.by_id(4)
        assert nodes.machines.by_id(lost.number) is None
        assert not lost.is_alive
        assert new.quorum.local.directory_id != before.directory_id
        await nodes.until(lambda: nodes.leader() is not None)
        assert sorted(nodes.leader().quorum.voters.ids) == sorted({1, 2, 3, 4} - {lost.number})
        assert sorted(images.newest.cluster.brokers) == sorted({1, 2, 3, 4} - {lost.number})
        (partition,) = images.newest.topics.by_name["t"].partitions.values()
        assert partition.replicas == tuple(4 if each == lost.number else each for each in (1, 2, 3))
        assert 4 in partition.isr
        assert set(troubles.stage.hosts) == {each.name for each in nodes.machines}
        assert troubles.stage.node_ids["n4"] == 4
        assert any(line.endswith("added") for line in nodes.trace.lines) is (seed == 2)
        assert not any(each.failures for each in nodes.machines)

    on_nodes(body, log, images)


def test_a_lost_broker_of_a_cluster_with_static_voters_is_replaced(on_nodes: Any) -> None:
    log, images = CommittedLog(), Images()

    async def body(nodes: Any) -> None:
        await nodes.start()
        troubles = Troubles(nodes, log, images)
        await troubles.create_topic([4, 1])
        await troubles.replacements.replace(nodes.machines[3], 0.5)
        assert nodes.machines[3].number == 5
        assert not nodes.machines[3].is_controller
        assert sorted(images.newest.cluster.brokers) == [1, 2, 3, 5]
        assert images.newest.topics.by_name["t"].partitions[0].replicas == (5, 1)
        assert sorted(nodes.leader().quorum.voters.ids) == [1, 2, 3]

    on_nodes(body, log, images, is_static=True, count=4, controllers=3)


def test_the_last_replica_in_sync_is_not_lost(on_nodes: Any) -> None:
    log, images, safekeeping = CommittedLog(), Images(), Safekeeping()
    safekeeping.image_committed(MetadataImage(), image(state((1,)), {1: 10, 2: 20, 3: 30}))

    async def body(nodes: Any) -> None:
        await nodes.start()
        await Troubles(nodes, log, images, safekeeping).replacements.replace(nodes.machines[0], 0.5)
        assert [each.number for each in nodes.machines] == [1, 2, 3]
        assert nodes.machines[0].is_up
        assert any("spared" in line for line in nodes.trace.lines)

    on_nodes(body, log)
