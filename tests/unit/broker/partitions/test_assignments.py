"""Reports of the directories of partitions: repeated until the controller has taken them."""

import asyncio

import pytest
from tests.support.nodes.held_partitions import virtual
from tests.unit.broker.partitions.moving_node import T_0, MovingNode

from ottla.broker.partitions.assignments import RETRY_S
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_UNASSIGNED, TopicPartition, Uuid
from ottla.wire.messages.metadata_records import PartitionChangeRecord


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
        assert node.controller.writes == 0, "nothing changes while it runs"
        await node.restart()
        await asyncio.sleep(RETRY_S)
        assert node.known_place() == "/a"
        assert node.known_place(TopicPartition("t", 1)) is None, "there is only one place where it can be"
        assert node.controller.writes == 1
        await node.moves.stop()

    virtual(scene())
