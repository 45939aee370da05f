"""The request helper: which broker is asked, what is retried, and the message when retries fail."""

import asyncio
from collections.abc import Awaitable, Callable
from socket import gaierror
from typing import TypeVar

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNetwork, FakeNode
from tests.unit.cli.conftest import WHERE, describe, metadata_of

from ottla.cli.common.cluster import Cluster, NoBroker
from ottla.cli.common.settings import ClientSettings
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.link import ConnectFailed, PeerFault
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T = TypeVar("T")
QUICK = ClientSettings((WHERE,), api_timeout_ms=2_000, retry_backoff_ms=1, retry_backoff_max_ms=2)


def work(network: FakeNetwork, script: Callable[[Cluster], Awaitable[T]], settings: ClientSettings = QUICK) -> T:
    async def run() -> T:
        cluster = Cluster(settings, network)
        try:
            return await script(cluster)
        finally:
            cluster.close()

    return asyncio.run(run())


def test_the_first_bootstrap_server_that_answers_is_used(node: FakeNode) -> None:
    settings = ClientSettings((("down", 1), WHERE))
    assert list(work(FakeNetwork({WHERE: node}), lambda cluster: cluster.topics(), settings)) == ["orders"]


def test_error_names_every_bootstrap_server_that_failed() -> None:
    with pytest.raises(NoBroker) as refused:
        work(FakeNetwork({}), lambda cluster: cluster.topics(), ClientSettings((("a", 1), ("b", 2))))
    assert "nothing listens at a:1" in str(refused.value)
    assert "nothing listens at b:2" in str(refused.value)
    assert "ottla up" in str(refused.value)


def test_server_that_is_not_kafka_gives_no_advice_to_start_one() -> None:
    web = FakeNode({ApiVersionsRequest: lambda request, version: b"HTTP/1.1 400 Bad Request\r\n\r\n"})
    with pytest.raises(NoBroker, match="It speaks HTTP") as refused:
        work(FakeNetwork({WHERE: web}), lambda cluster: cluster.topics())
    assert "ottla up" not in str(refused.value)


def test_a_connection_that_ends_is_opened_again(node: FakeNode) -> None:
    answer_metadata = metadata_of(describe("orders"))
    answers = iter([HANG_UP, HANG_UP])
    node.handlers[MetadataRequest] = lambda request, version: next(answers, None) or answer_metadata(request, version)
    assert list(work(FakeNetwork({WHERE: node}), lambda cluster: cluster.topics())) == ["orders"]
    assert node.connections == 3


def test_retriable_errors_are_retried_and_others_are_raised() -> None:
    codes = iter([ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE, 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED])

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        return MetadataResponse(topics=[MetadataResponseTopic(name="orders", error_code=next(codes))])

    network = FakeNetwork({WHERE: FakeNode({MetadataRequest: answer})})

    async def script(cluster: Cluster) -> None:
        assert (await cluster.topic("orders")).name == "orders"
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            await cluster.topic("orders")

    work(network, script)


def test_retries_end_at_the_deadline() -> None:
    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        return MetadataResponse(topics=[MetadataResponseTopic(name="orders", error_code=ErrorCode.LEADER_NOT_AVAILABLE)])

    settings = ClientSettings((WHERE,), api_timeout_ms=30, retry_backoff_ms=1, retry_backoff_max_ms=2)
    with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE"):
        work(FakeNetwork({WHERE: FakeNode({MetadataRequest: answer})}), lambda cluster: cluster.topic("orders"), settings)


def test_missing_topic_is_reported_without_retries(node: FakeNode) -> None:
    with pytest.raises(KafkaError, match=r"topic absent does not exist"):
        work(FakeNetwork({WHERE: node}), lambda cluster: cluster.topic("absent"))
    assert len(node.asked_for(MetadataRequest)) == 1


def test_partitions_are_asked_of_their_leaders_until_they_answer() -> None:
    """Two brokers. One partition moves from one to the other during the request; another has no leader at first."""
    state = {"asked": 0}

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        state["asked"] += 1
        early = state["asked"] < 3
        leaders = {0: 1, 1: 1 if early else 2, 2: -1 if early else 2}
        partitions = [MetadataResponsePartition(partition_index=index, leader_id=leader) for index, leader in leaders.items()]
        brokers = [MetadataResponseBroker(node_id=number, host=f"broker{number}", port=9) for number in (1, 2)]
        return MetadataResponse(brokers=brokers, topics=[MetadataResponseTopic(name="orders", partitions=partitions)])

    node = FakeNode({MetadataRequest: answer})
    network = FakeNetwork({WHERE: node, ("broker1", 9): node, ("broker2", 9): node})
    calls: list[tuple[int, list[int]]] = []

    async def ask(broker_id: int, partitions: list[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        calls.append((broker_id, [each.partition for each in partitions]))
        moved = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")
        return {each: moved if each.partition == 1 and broker_id == 1 else broker_id for each in partitions}

    wanted = [TopicPartition("orders", index) for index in range(4)]
    found = work(network, lambda cluster: cluster.by_leader(wanted, ask))
    missing = found.pop(wanted[3])
    assert isinstance(missing, KafkaError)
    assert "orders has no partition 3" in str(missing)
    assert found == {wanted[0]: 1, wanted[1]: 2, wanted[2]: 2}
    assert calls[0] == (1, [0, 1])
    assert calls[-1] == (2, [1, 2])


def test_a_leader_that_cannot_be_reached_is_tried_again_until_the_deadline(node: FakeNode) -> None:
    node.handlers[MetadataRequest] = metadata_of(describe("orders", 1))
    failing = [HANG_UP, HANG_UP, HANG_UP]

    async def ask(broker_id: int, partitions: list[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        from ottla.link import LinkEnded

        if failing:
            failing.pop()
            raise LinkEnded("x:1", "gone")
        return dict.fromkeys(partitions, 7)

    partition = TopicPartition("orders", 0)
    assert work(FakeNetwork({WHERE: node}), lambda cluster: cluster.by_leader([partition], ask)) == {partition: 7}


def test_request_is_not_repeated_after_a_protocol_fault_of_the_peer(node: FakeNode) -> None:
    node.handlers[MetadataRequest] = lambda request, version: b"\0\0\0\2ab"
    with pytest.raises(PeerFault):
        work(FakeNetwork({WHERE: node}), lambda cluster: cluster.topics())
    assert node.connections == 1


def test_unreachable_advertised_listener_is_named_as_such() -> None:
    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        broker = MetadataResponseBroker(node_id=1, host="inside-only", port=29092)
        return MetadataResponse(brokers=[broker], controller_id=1)

    network = FakeNetwork({WHERE: FakeNode({MetadataRequest: answer}), ("inside-only", 29092): gaierror(-2, "not known")})
    with pytest.raises(
        ConnectFailed, match=r"broker 1 tells its clients to connect to inside-only:29092 \(its advertised"
    ) as refused:
        work(network, lambda cluster: cluster.ask_controller(MetadataRequest()))
    assert not refused.value.is_retriable, "an unknown host name stays unknown"
