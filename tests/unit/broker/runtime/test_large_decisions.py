"""Decisions about many elements: made in a worker thread, one at a time, with the others waiting."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

import pytest
from tests.support.nodes.quorum_node import QuorumNode, setting

from ottla.broker.runtime.large_decisions import is_large
from ottla.env import World
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.decision import Asker, Decision
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.sim.world import SeededRandomness
from ottla.wire.base import Message
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata_records import TopicRecord
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

T = TypeVar("T")
COUNT = MANY_ELEMENTS + 1


class LateWorkers:
    """Workers whose calls run when a test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    async def run(self, call: Callable[[], T], /) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.begun.append((call, future))
        return await future

    def end_first(self) -> None:
        call, future = self.begun.pop(0)
        try:
            future.set_result(call())
        except Exception as failure:
            future.set_exception(failure)


class NodeWithWorkers(QuorumNode):
    def __init__(self) -> None:
        super().__init__()
        self.workers = LateWorkers()

    @property
    def world(self) -> World:
        return super().world._replace(compute=self.workers)


async def with_topics() -> NodeWithWorkers:
    node = NodeWithWorkers()
    await node.format()
    await node.start()
    records = [TopicRecord(name=f"t{number}", topic_id=Uuid(number.to_bytes(16, "big"))) for number in range(1, COUNT + 1)]
    await node.write(*records)
    return node


def delete_all(node: NodeWithWorkers) -> Coroutine[Any, Any, Any]:
    names = [DeleteTopicState(name=f"t{number}") for number in range(1, COUNT + 1)]
    return node.controller.call(DeleteTopicsRequest(topics=names), Asker(6))


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def topics_of(node: QuorumNode) -> int:
    return len(node.controller.state.image.topics.by_name)


def test_large_decision_is_made_in_a_worker_thread() -> None:
    async def run() -> None:
        node = await with_topics()
        deleting = asyncio.ensure_future(delete_all(node))
        await turns()
        assert topics_of(node) == COUNT
        node.workers.end_first()
        response = await deleting
        assert [each.error_code for each in response.responses] == [0] * COUNT
        assert topics_of(node) == 0
        await node.loader.caught_up()
        assert not node.loader.published.topics.by_name
        assert node.controller.state.image.provenance.offset == node.quorum.end_offset - 1
        await node.close()

    asyncio.run(run())


def test_small_decisions_wait_for_a_large_one_and_come_before_the_next() -> None:
    async def run() -> None:
        node = await with_topics()
        first, second = (asyncio.ensure_future(delete_all(node)) for _ in range(2))
        await turns()

        def count(state: ControllerState, now_ms: int) -> Decision[int]:
            return Decision(len(state.image.topics.by_name), [setting("log.retention.ms", "7")])

        small = asyncio.ensure_future(node.controller.write(count))
        await turns()
        assert len(node.workers.begun) == 1, "one large decision at a time"
        assert not small.done()
        node.workers.end_first()
        await first
        assert await small == 0
        await turns()
        node.workers.end_first()
        assert {each.error_code for each in (await second).responses} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        await node.close()

    asyncio.run(run())


def test_decision_is_made_again_if_the_log_has_grown_meanwhile() -> None:
    async def run() -> None:
        node = await with_topics()
        deleting = asyncio.ensure_future(delete_all(node))
        await turns()
        call, future = node.workers.begun.pop()
        made = call()
        node.quorum.append(
            node.quorum.prepare([setting("log.retention.ms", "7")], node.controller.state.image.metadata_version)
        )
        future.set_result(made)
        await turns()
        assert not deleting.done()
        node.workers.end_first()
        assert {each.error_code for each in (await deleting).responses} == {0}
        await node.close()

    asyncio.run(run())


def test_controller_that_lost_the_lead_meanwhile_appends_nothing() -> None:
    async def run() -> None:
        node = await with_topics()
        deleting = asyncio.ensure_future(delete_all(node))
        await turns()
        end_offset = node.quorum.end_offset
        node.controller.leader_changed(7, node.quorum.epoch + 1)
        node.workers.end_first()
        with pytest.raises(KafkaError) as refused:
            await deleting
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert node.quorum.end_offset == end_offset
        await node.close()

    asyncio.run(run())


def test_nothing_is_appended_when_the_lead_is_lost_before_the_controller_hears_of_it() -> None:
    async def run() -> None:
        node = await with_topics()
        deleting = asyncio.ensure_future(delete_all(node))
        await turns()
        end_offset = node.quorum.end_offset
        call, future = node.workers.begun.pop()
        made = call()
        node.quorum.replica.become_unattached(node.quorum.epoch + 1, 0)  # as while this election becomes durable
        assert node.controller.is_active
        future.set_result(made)
        await turns()
        assert node.quorum.end_offset == end_offset
        assert topics_of(node) == COUNT
        node.workers.end_first()
        with pytest.raises(KafkaError) as refused:
            await deleting
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert node.quorum.end_offset == end_offset
        assert not node.quorum.failure.done()
        await node.close()

    asyncio.run(run())


def test_refusal_of_a_large_decision_writes_nothing() -> None:
    async def run() -> None:
        node = await with_topics()
        end_offset = node.quorum.end_offset
        topics = [CreatableTopic(name="t", num_partitions=20_000, replication_factor=1)]
        creating = asyncio.ensure_future(node.controller.call(CreateTopicsRequest(topics=topics), Asker(7)))
        await turns()
        node.workers.end_first()
        with pytest.raises(KafkaError) as refused:
            await creating
        assert refused.value.code == ErrorCode.POLICY_VIOLATION
        assert node.quorum.end_offset == end_offset
        await node.set("log.retention.ms", "7")
        await node.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=COUNT)]), True),
        (CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=-1)] * 100), True),
        (CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=-1)]), False),
        (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=COUNT)]), True),
        (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=4)]), False),
        (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=f"t{n}", count=n) for n in (COUNT, -COUNT)]), True),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")] * COUNT), True),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), False),
        (ElectLeadersRequest(topic_partitions=None), False),  # there are no topics
        (UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="f")] * COUNT), False),  # decided on the loop
    ],
)
def test_requests_about_many_elements_are_large(request_: Message, expected: bool) -> None:
    state = ControllerState(ControllerSettings("c", 1, num_partitions=6), SeededRandomness(Random(1)))
    assert is_large(request_, state) == expected


def test_a_new_min_isr_is_large_in_a_cluster_with_many_partitions() -> None:
    def request(name: str) -> IncrementalAlterConfigsRequest:
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[AlterableConfig(name=name, value="2")])
        return IncrementalAlterConfigsRequest(resources=[resource])

    state = ControllerState(ControllerSettings("c", 1), SeededRandomness(Random(1)))
    assert not is_large(request("min.insync.replicas"), state)
    state.replay([TopicRecord(name=f"t{n}", topic_id=Uuid(n.to_bytes(16, "big"))) for n in range(101)], 0, 1, 0)
    assert is_large(request("min.insync.replicas"), state)
    assert not is_large(request("log.retention.ms"), state)
