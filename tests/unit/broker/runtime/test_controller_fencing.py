"""The controller fences brokers that send no heartbeats, however many partitions they have."""

import asyncio

import pytest
from tests.support.nodes.quorum_node import CLUSTER_ID, QuorumNode

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.decision import Asker
from ottla.metadata.features import SUPPORTED_FEATURES
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from ottla.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


async def with_silent_brokers(partitions: int) -> QuorumNode:
    """metadata.version 3.5; brokers 2 and 3 have all partitions, and send no heartbeats."""
    node = QuorumNode()
    await node.format(release_version="3.5")
    await node.start()
    for broker_id in (2, 3):
        incarnation_id = Uuid(bytes([broker_id]) * 16)
        await node.write(
            RegisterBrokerRecord(broker_id=broker_id, incarnation_id=incarnation_id, broker_epoch=broker_id, fenced=False)
        )
        node.controller.state.sessions.expect(broker_id, broker_id, 0)
    topic_id = Uuid(b"t" * 16)
    await node.write(TopicRecord(name="t", topic_id=topic_id))
    for first in range(0, partitions, 10_000):
        await node.write(
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=[2, 3],
                    isr=[2, 3],
                    leader=2,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index in range(first, min(first + 10_000, partitions))
            )
        )
    node.clock.advance(60_000)
    return node


def test_a_broker_with_more_partitions_than_fit_into_a_batch_is_fenced() -> None:
    async def run() -> None:
        node = await with_silent_brokers(10_001)
        controller, end_offset = node.controller, node.quorum.end_offset
        controller._fence_silent_brokers()
        controller._fence_silent_brokers()
        assert all(broker.fenced for broker in controller.state.image.cluster.brokers.values())
        batches = [batch for batch in node.quorum.log.batches(end_offset) if batch.records]
        assert [len(batch.records) for batch in batches] == [10_000, 2, 10_000, 2]
        assert isinstance(batches[1].records[-1], BrokerRegistrationChangeRecord), "the broker is fenced after its partitions"
        await node.close()

    asyncio.run(run())


def test_silent_brokers_are_looked_for_again_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        node = await with_silent_brokers(1)
        controller = node.controller

        def refuse(*_: object) -> None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "not now")

        monkeypatch.setattr(node.quorum, "prepare", refuse)
        before = controller._fencing
        controller._fence_silent_brokers()
        assert controller._fencing is not before
        monkeypatch.undo()
        controller._fence_silent_brokers()
        assert controller.state.image.cluster.brokers[2].fenced
        await node.close()

    asyncio.run(run())


def test_broker_with_many_partitions_stops_and_registers_without_metadata_transactions() -> None:
    async def run() -> None:
        node = await with_silent_brokers(10_050)
        call = node.controller.call
        offset = {"current_metadata_offset": 1 << 40}
        stopping = await call(BrokerHeartbeatRequest(broker_id=2, broker_epoch=2, want_shut_down=True, **offset), Asker(1))
        assert not stopping.should_shut_down, "broker 3 has not read the new leaders"
        node.controller.state.sessions.forget(3)  # it was killed, and starts again
        features = [
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ]
        registered = await call(
            BrokerRegistrationRequest(
                broker_id=3, cluster_id=CLUSTER_ID, incarnation_id=Uuid(b"3" * 16), features=features, rack=None
            ),
            Asker(4),
        )
        partitions = node.controller.state.image.topics.by_name["t"].partitions.values()
        assert {each.leader for each in partitions} == {-1}
        unfenced = await call(BrokerHeartbeatRequest(broker_id=3, broker_epoch=registered.broker_epoch, **offset), Asker(1))
        assert not unfenced.is_fenced
        partitions = node.controller.state.image.topics.by_name["t"].partitions.values()
        assert {each.leader for each in partitions} == {3}

    asyncio.run(run())
