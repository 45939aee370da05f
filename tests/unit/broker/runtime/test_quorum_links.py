"""Links to other voters: where they are, who listens, what becomes of messages."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.quorum_node import QuorumNode, setting
from tests.support.servers.kafka_server import free_ports

from ottla.broker.node_links import NodeLinks
from ottla.broker.runtime.metadata_log import MetadataBatch
from ottla.broker.runtime.quorum_delivery import Delivery
from ottla.broker.runtime.quorum_links import QuorumLinks
from ottla.broker.runtime.quorum_peers import QuorumPeers
from ottla.broker.runtime.start import Listeners
from ottla.env.real.world import real_world
from ottla.errors.codes import ErrorCode
from ottla.link import ConnectFailed, RequestTimedOut
from ottla.raft.effects import Destination
from ottla.raft.snapshots import SnapshotContent, SnapshotId
from ottla.raft.voters import VoterSet, static_voters
from ottla.wire.messages.vote import VoteRequest


def test_an_unreachable_node_fails_each_request() -> None:
    async def run() -> None:
        (port,) = free_ports(1)
        with real_world() as world:
            links = QuorumLinks(NodeLinks(world.network), "raft-client-1", 1000)
            for _ in range(2):
                with pytest.raises(ConnectFailed, match="nothing listens"):
                    await links.request(Destination(2, "127.0.0.1", port), VoteRequest())
            links.close()

    asyncio.run(run())


VOTERS = static_voters(((1, "h1", 9093), (2, "h2", 9093), (3, "h3", 9093)), "CONTROLLER")
BOOTSTRAP = (("h1", 9093), ("h2", 9093), ("h3", 9093))


def to(node: int) -> Destination:
    return Destination(node, f"h{node}", 9093)


def answer(code: int = 0) -> Any:
    return SimpleNamespace(error_code=code)


def peers() -> QuorumPeers:
    return QuorumPeers("my-cluster")


def test_missing_voters_are_named_with_their_addresses() -> None:
    known = peers()
    known.failed(to(2), ConnectFailed("h2:9093", "refused"))
    known.failed(to(3), RequestTimedOut("h3:9093", "too late"))
    assert known.missing(VOTERS, 1, BOOTSTRAP) == (
        "the metadata quorum has 3 voters and needs 2 of them to elect a controller. Missing: node 2 at h2:9093 (accepts no "
        "connections), node 3 at h3:9093 (does not answer). Start them, or correct controller.quorum.voters"
    )


def test_nothing_is_missing_while_a_majority_answers() -> None:
    known = peers()
    known.failed(to(2), ConnectFailed("h2:9093", "refused"))
    known.answered(to(3), answer())
    assert known.missing(VOTERS, 1, BOOTSTRAP) is None


def test_an_answer_ends_the_failure_and_a_failure_the_answer() -> None:
    known = peers()
    known.answered(to(2), answer())
    known.failed(to(2), OSError("broken"))
    assert "node 2 at h2:9093 (broken)" in (known.missing(VOTERS, 1, BOOTSTRAP) or "")
    assert known.down == {2}
    known.answered(to(2), answer())
    assert known.down == set()
    assert known.missing(VOTERS, 1, BOOTSTRAP) is None


def test_a_node_that_knows_no_voters_names_its_bootstrap_servers() -> None:
    known = peers()
    for node in (1, 2, 3):
        known.failed(to(node), ConnectFailed(f"h{node}:9093", "refused"))
    said = known.missing(VoterSet(()), 9, BOOTSTRAP) or ""
    assert said.startswith("no controller can be reached: h1:9093 (accepts no connections), h2:9093")
    assert said.endswith("controller.quorum.bootstrap.servers")
    known.answered(to(3), answer())
    assert known.missing(VoterSet(()), 9, BOOTSTRAP) is None


def test_most_voters_in_another_cluster_is_final_and_one_is_not() -> None:
    known = peers()
    known.answered(to(2), answer(ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert known.wrong_cluster(VOTERS, BOOTSTRAP) is None
    assert "node 2 at h2:9093 (belongs to another cluster)" in (known.missing(VOTERS, 1, BOOTSTRAP) or "")
    known.answered(to(3), answer(ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert known.wrong_cluster(VOTERS, BOOTSTRAP) == (
        "the controllers at h2:9093, h3:9093 belong to another cluster: this node's directories are of cluster "
        "my-cluster. Correct log.dirs or the controller.quorum settings, or format the directories for theirs"
    )


class Notes:
    def __init__(self, name: str, notes: list[object]) -> None:
        self._name, self._notes = name, notes

    def committed(self, batches: object) -> None:
        self._notes.append((self._name, batches))

    def loaded_snapshot(self, snapshot: object) -> None:
        self._notes.append((self._name, snapshot))

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self._notes.append((self._name, leader_id, epoch))


def test_every_call_reaches_each_listener_in_order() -> None:
    notes: list[object] = []
    both = Listeners(Notes("first", notes), Notes("second", notes))
    batch = MetadataBatch(0, 0, 1, 0, 10)
    both.leader_changed(None, 4)
    both.loaded_snapshot(batch)
    both.committed([batch])
    assert notes == [
        ("first", None, 4),
        ("second", None, 4),
        ("first", batch),
        ("second", batch),
        ("first", [batch]),
        ("second", [batch]),
    ]


async def logged(count: int) -> QuorumNode:
    """A node whose log ends at `3 + count`, with the leader's three records first."""
    node = QuorumNode()
    await node.format()
    await node.open()
    list(node.quorum.load())
    await node.quorum.elect()
    for number in range(count):
        node.quorum.append(node.quorum.prepare([setting("n", str(number))], 30))
    return node


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_batches_from_the_log_and_from_memory_come_once_and_in_order() -> None:
    async def run() -> None:
        node = await logged(5)
        batches = list(node.quorum.log.batches(0))
        delivery = Delivery(node.quorum.log)
        for batch in batches[3:]:
            delivery.appended(batch)
        got: list[int] = []

        async def committed(found: Sequence[MetadataBatch]) -> None:
            got.extend(batch.base_offset for batch in found)

        task = asyncio.create_task(delivery.run(committed, None))
        delivery.committed(6)
        await settle()
        assert got == [0, 3, 4, 5], "nothing above the high watermark"
        delivery.committed(8)
        await settle()
        assert got == [0, 3, 4, 5, 6, 7]
        assert delivery.passed_on == 8
        task.cancel()

    asyncio.run(run())


def test_truncated_batches_are_forgotten() -> None:
    async def run() -> None:
        node = await logged(3)
        delivery = Delivery(node.quorum.log)
        for batch in node.quorum.log.batches(0):
            delivery.appended(batch)
        delivery.truncated(4)
        delivery.committed(4)
        assert [batch.base_offset for batch in delivery._take()] == [0, 3]
        assert delivery._take() == []

    asyncio.run(run())


def test_snapshot_comes_before_the_batches_after_it() -> None:
    async def run() -> None:
        node = await logged(3)
        snapshot_id = SnapshotId(4, 1)
        await node.quorum.log.snapshots.write(snapshot_id, 0, 0, None, [], 0)
        delivery = Delivery(node.quorum.log)
        got: list[object] = []

        async def committed(found: Sequence[MetadataBatch]) -> None:
            got.extend(batch.base_offset for batch in found)

        async def loaded(found: SnapshotId, content: SnapshotContent) -> None:
            got.append(found)

        delivery.snapshot_loaded(snapshot_id)
        delivery.committed(6)
        task = asyncio.create_task(delivery.run(committed, loaded))
        await settle()
        assert got == [snapshot_id, 4, 5]
        task.cancel()

    asyncio.run(run())
