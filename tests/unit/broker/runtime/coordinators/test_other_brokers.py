"""What a broker makes of another broker's answers about transactions, and of none."""

import asyncio
from typing import Any, cast

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.support.nodes.held_partitions import virtual

from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.node_links import NodeLinks
from ottla.broker.runtime.coordinators.other_brokers import OtherBrokers, _verified
from ottla.broker.runtime.coordinators.transaction_markers import Marker, Outcome
from ottla.broker.runtime.coordinators.verification import Begun
from ottla.coordinator.contract import Producer
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import Provenance
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.metadata_records import BrokerEndpoint, RegisterBrokerRecord
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest

ZERO, ONE = TopicPartition("topic", 0), TopicPartition("topic", 1)


class Settings:
    class current:
        inter_broker_listener_name = "PLAINTEXT"
        add_partitions_to_txn_retry_backoff_ms = 20
        add_partitions_to_txn_retry_backoff_max_ms = 100
        request_timeout_ms = 1000


def other_brokers() -> OtherBrokers:
    return OtherBrokers(cast(Any, None), 1, cast(Any, Settings), MetadataCache())


def answer(code: int) -> AddPartitionsToTxnResponse:
    results = [AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)]
    topics = [AddPartitionsToTxnTopicResult(name="topic", results_by_partition=results)]
    return AddPartitionsToTxnResponse(
        results_by_transaction=[AddPartitionsToTxnResult(transactional_id="id", topic_results=topics)]
    )


def test_codes_of_partitions_are_taken_from_the_answer() -> None:
    assert _verified(answer(ErrorCode.TRANSACTION_ABORTABLE), [ZERO]) == {ZERO: ErrorCode.TRANSACTION_ABORTABLE}


def test_fenced_producer_gets_the_code_it_knows_from_appends() -> None:
    assert _verified(answer(ErrorCode.PRODUCER_FENCED), [ZERO]) == {ZERO: ErrorCode.INVALID_PRODUCER_EPOCH}


def test_refused_request_refuses_every_partition() -> None:
    refused = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert set(_verified(refused, [ZERO, ONE]).values()) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_broker_that_cannot_be_reached_leaves_codes_at_which_callers_try_again() -> None:
    async def story() -> tuple[Outcome, dict[TopicPartition, int]]:
        others = other_brokers()
        written: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        verified: asyncio.Future[dict[TopicPartition, int]] = asyncio.get_running_loop().create_future()
        others.write_markers(2, Marker(Producer(7, 0), True, 0, 2), [ZERO, ONE], written.set_result)
        others.verify(2, "id", Producer(7, 0), [ZERO], True, verified.set_result, Begun(lambda: None, lambda: False))
        outcome = await asyncio.wait_for(written, 5), await asyncio.wait_for(verified, 5)
        await others.stop()
        return outcome

    assert asyncio.run(story()) == (
        dict.fromkeys([ZERO, ONE], ErrorCode.NOT_LEADER_OR_FOLLOWER),
        {ZERO: ErrorCode.COORDINATOR_NOT_AVAILABLE},
    )


def test_request_that_fails_by_a_bug_is_answered_too(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Else the transaction would wait for its marker for ever, and a batch for its verification."""

    async def fail(*key: object) -> None:
        raise ValueError("a bug")

    async def scenario() -> None:
        others = other_brokers()
        monkeypatch.setattr(others, "_link", fail)
        written: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        others.write_markers(2, Marker(Producer(1, 0), True, 0, 2), [ZERO], written.set_result)
        assert await written == {ZERO: ErrorCode.NOT_LEADER_OR_FOLLOWER}

    virtual(scenario())
    assert "a request about transactions to node 2 failed" in caplog.text


def test_coordinator_is_asked_again_when_a_marker_has_ended_what_was_begun() -> None:
    """The marker of the previous transaction can arrive after the question was sent, and before the coordinator gets it."""
    asked: list[Any] = []
    began: list[int] = []

    class Others(OtherBrokers):
        async def _ask(self, broker_id: int, request: Any) -> Any:
            asked.append(request)
            return answer(ErrorCode.NONE)

    async def story() -> dict[TopicPartition, int]:
        others = Others(cast(Any, None), 1, cast(Any, Settings), MetadataCache())
        verified: asyncio.Future[dict[TopicPartition, int]] = asyncio.get_running_loop().create_future()
        begun = Begun(lambda: began.append(len(asked)), lambda: len(asked) == 1)
        others.verify(2, "id", Producer(7, 0), [ZERO], True, verified.set_result, begun)
        return await asyncio.wait_for(verified, 5)

    assert asyncio.run(story()) == {ZERO: ErrorCode.NONE}
    assert (len(asked), began) == (2, [1])  # begun again after the first answer, before the second question


def test_request_to_a_process_that_lost_its_power_ends_when_the_next_is_registered() -> None:
    async def story() -> Outcome:
        node = FakeNode({WriteTxnMarkersRequest: lambda request, version: None})  # no answer, and no end of the connection
        metadata = MetadataCache()
        register(metadata, b"1")
        others = OtherBrokers(NodeLinks(FakeNetwork({("two", 9092): node})), 1, cast(Any, Settings), metadata)
        written: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        others.write_markers(2, Marker(Producer(7, 0), True, 0, 2), [ZERO], written.set_result)
        while not node.asked_for(WriteTxnMarkersRequest):
            await asyncio.sleep(0)
        others.brokers_changed({2})  # another change of the same registration
        await asyncio.sleep(0)
        assert not written.done()
        register(metadata, b"2")
        others.brokers_changed({2})
        outcome = await asyncio.wait_for(written, 0.5)
        await others.stop()
        return outcome

    assert asyncio.run(story()) == {ZERO: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def register(metadata: MetadataCache, incarnation: bytes) -> None:
    delta = MetadataDelta(metadata.image)
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="two", port=9092)
    delta.replay(RegisterBrokerRecord(broker_id=2, incarnation_id=Uuid(incarnation * 16), end_points=[endpoint]))
    metadata.image = delta.finish(Provenance(1, 1, 0))


def test_requests_to_a_silent_broker_fail_together() -> None:
    """One attempt to connect after the other would keep the markers of many transactions from the next leader for long."""

    class Silent:
        attempts = 0

        async def connect(self, *arguments: Any) -> Any:
            self.attempts += 1
            await asyncio.Event().wait()

    async def story() -> None:
        metadata, network = MetadataCache(), Silent()
        register(metadata, b"1")
        others = OtherBrokers(NodeLinks(cast(Any, network)), 1, cast(Any, Settings), metadata)
        answered: list[Outcome] = []
        for producer_id in range(50):
            others.write_markers(2, Marker(Producer(producer_id, 0), True, 0, 2), [ZERO], answered.append)
        begun_s = asyncio.get_running_loop().time()
        while len(answered) < 50:
            await asyncio.sleep(1)
            assert asyncio.get_running_loop().time() - begun_s < 15, f"{len(answered)} of 50 are answered"
        assert answered == [{ZERO: ErrorCode.NOT_LEADER_OR_FOLLOWER}] * 50
        assert network.attempts == 1
        others.write_markers(2, Marker(Producer(50, 0), True, 0, 2), [ZERO], answered.append)
        await asyncio.sleep(1)
        assert network.attempts == 2
        await others.stop()

    virtual(story())
