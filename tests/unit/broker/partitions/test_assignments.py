"""Reports of the directories of partitions: repeated until the controller has taken them."""

import asyncio

import pytest
from tests.support.nodes.held_partitions import virtual
from tests.unit.broker.partitions.moving_node import T_0, MovingNode

from ottla.broker.partitions.assignments import RETRY_S
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition


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
