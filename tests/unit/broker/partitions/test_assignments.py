"""Reports of the directories of partitions: repeated until the controller has taken them."""

import asyncio

import pytest
from tests.support.nodes.held_partitions import NODE, virtual
from tests.unit.broker.partitions.moving_node import BROKER_EPOCH, T_0, MovingNode

from ottla.broker.partitions.assignments import RETRY_S
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_UNASSIGNED, TopicPartition, Uuid
from ottla.metadata.image.topics import NO_LEADER
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord


@pytest.mark.parametrize(
    "failure", [KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller has answered"), ZeroDivisionError("a bug")]
)
def test_refused_report_is_repeated(failure: Exception) -> None:
    async def scene() -> None:
        node = await MovingNode.open()
        node.controller.refusal = failure
        await node.held.make_topic("t", 2)
        node.moves.metadata_changed()
        await asyncio.sleep(RETRY_S * 3.5)
        assert node.controller.writes == 4, "once a second"
        assert node.known_place() is None
        node.controller.refusal = None
        await asyncio.sleep(RETRY_S)
        for name in (T_0, TopicPartition("t", 1)):
            assert node.known_place(name) == node.place(name)
        writes = node.controller.writes
        await asyncio.sleep(RETRY_S * 5)
        assert node.controller.writes == writes
        await node.moves.stop()

    virtual(scene())


def test_repeated_report_ends_with_the_node() -> None:
    async def scene() -> None:
        node = await MovingNode.open()
        node.controller.refusal = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller has answered")
        await node.held.make_topic("t")
        node.moves.metadata_changed()
        await asyncio.sleep(RETRY_S)
        await node.moves.stop()
        writes = node.controller.writes
        await asyncio.sleep(RETRY_S * 5)
        assert node.controller.writes == writes

    virtual(scene())


def test_node_with_one_directory_reports_that_it_is_another_one() -> None:
    """After a disk was replaced the metadata has the id of the old one, and the controller would never elect this replica."""

    async def scene() -> None:
        node = await MovingNode.open(paths=("/a",))
        await node.held.make_topic("t", 2)
        topic = node.held.metadata.image.topics.by_name["t"]
        await node.held.commit(
            PartitionChangeRecord(topic_id=topic.id, partition_id=0, directories=[Uuid(b"the old directory"[:16])]),
            PartitionChangeRecord(topic_id=topic.id, partition_id=1, directories=[DIRECTORY_UNASSIGNED]),
        )
        assert node.known_place() is None
        node.moves.metadata_changed()
        await asyncio.sleep(RETRY_S)
        assert node.controller.writes == 0, "nothing has changed while it runs"
        await node.restart()
        await asyncio.sleep(RETRY_S)
        assert node.known_place() == "/a"
        assert node.known_place(TopicPartition("t", 1)) is None, "there is only one place where it can be"
        assert node.controller.writes == 1
        await node.moves.stop()

    virtual(scene())


async def node_with_three_directories() -> MovingNode:
    node = await MovingNode.open(paths=("/a", "/b", "/c"))
    node.held.partitions.on_directory_lost = lambda loss: node.moves.directory_lost()
    return node


def fail(node: MovingNode, path: str) -> None:
    node.held.partitions.lose_directory(LogDirectoryFailed(path, OSError(5, "the disk is broken")))


async def heartbeat_reports(node: MovingNode, lost: str) -> None:
    """What the controller writes for the node's heartbeat."""
    directories = node.held.directories.directories
    node.controller.offline = frozenset(each.directory_id for each in directories if each.path == lost and each.directory_id)
    left = [each.directory_id for each in directories if each.path != lost and each.directory_id]
    await node.held.commit(BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=BROKER_EPOCH, log_dirs=left))


def test_directory_that_fails_before_its_new_partition_is_reported() -> None:
    """The controller does not know where the partition is, and would let this node go on to lead it."""

    async def scene() -> None:
        node = await node_with_three_directories()
        node.controller.refusal = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller has answered")
        await node.held.make_topic("t", 2)
        await asyncio.sleep(RETRY_S * 1.5)
        place = node.place()
        fail(node, place)
        await heartbeat_reports(node, lost=place)
        assert node.leader() == NODE
        node.controller.refusal = None
        await asyncio.sleep(RETRY_S)
        assert node.known_place() == place
        assert node.leader() == NO_LEADER
        assert node.leader(TopicPartition("t", 1)) == NODE
        writes = node.controller.writes
        await node.held.commit()
        await asyncio.sleep(RETRY_S * 5)
        assert node.controller.writes == writes
        await node.moves.stop()

    virtual(scene())


@pytest.mark.parametrize("is_source", [True, False])
def test_directory_that_fails_after_a_move_was_announced(is_source: bool) -> None:
    """The log is still in the source: if that fails it is lost, and if the target fails it stays there."""

    async def scene() -> None:
        node = await node_with_three_directories()
        await node.held.make_topic("t")
        await asyncio.sleep(RETRY_S)
        source, target = node.place(), "/c"
        assert (node.known_place(), source != target) == (source, True)
        commit = node.held.commit

        async def commit_and_fail(*records: Message) -> None:
            node.held.commit = commit  # type: ignore[method-assign]  # the real one again
            await commit(*records)
            assert node.known_place() == target, "announced, and not moved yet"
            fail(node, source if is_source else target)

        node.held.commit = commit_and_fail  # type: ignore[method-assign]  # a stand-in
        await node.moves.request(T_0, target)
        await asyncio.sleep(RETRY_S)
        assert (node.known_place(), node.on_its_way_to()) == (source, target)
        await node.moves.stop()

    virtual(scene())


def test_lost_partition_that_the_controller_has_in_a_failed_directory_is_not_reported() -> None:
    async def scene() -> None:
        node = await node_with_three_directories()
        await node.held.make_topic("t")
        await asyncio.sleep(RETRY_S)
        writes = node.controller.writes
        fail(node, node.place())
        await asyncio.sleep(RETRY_S)
        assert node.controller.writes == writes
        await node.moves.stop()

    virtual(scene())
