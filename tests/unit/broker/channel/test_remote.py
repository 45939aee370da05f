"""The channel to a controller on another node: retries until the timeout, and what the caller gets."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from tests.support.nodes.deciding_controller import DecidingController, services_of
from tests.support.nodes.fake_node import HANG_UP, FakeNetwork, FakeNode
from tests.support.nodes.held_partitions import virtual
from tests.support.nodes.images import context_of, image_of

from ottla.broker.channel import ControllerChannel
from ottla.broker.channel.envelope import decode_principal, wrap_response
from ottla.broker.channel.forwarded import ForwardedRequest, LocalChannel
from ottla.broker.channel.links import Address, ControllerLinks
from ottla.broker.channel.remote import RemoteChannel
from ottla.broker.node_links import NodeLinks
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.link import LinkError
from ottla.wire.api_table import ApiKey
from ottla.wire.headers import parse_request
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

THERE = Address(3, "three", 9093)
REQUEST = AllocateProducerIdsRequest(broker_id=1, broker_epoch=5)
NOT_CONTROLLER = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
BLOCK = AllocateProducerIdsResponse(producer_id_start=7000, producer_id_len=1000)


def one_by_one(*answers: object) -> Callable[[Any, int], object]:
    """A handler that gives these answers in turn, and then the last one again and again."""
    left = list(answers)
    return lambda request, version: left.pop(0) if len(left) > 1 else left[0]


def channel_to(
    node: FakeNode, leader: Callable[[], Address | None] = lambda: THERE, own: DecidingController | None = None
) -> ControllerChannel:
    services: Any = None if own is None else services_of(own)
    return RemoteChannel(ControllerLinks(NodeLinks(FakeNetwork({THERE[1:3]: node})), 1), leader, services)


def test_request_is_sent_again_until_a_controller_answers() -> None:
    async def run() -> None:
        node = FakeNode({AllocateProducerIdsRequest: one_by_one(NOT_CONTROLLER, HANG_UP, NOT_CONTROLLER, BLOCK)})
        assert (await channel_to(node).call(REQUEST)).producer_id_start == 7000
        assert len(node.asked_for(AllocateProducerIdsRequest)) == 4
        assert node.connections == 2

    asyncio.run(run())


def test_timeout_also_ends_the_wait_for_requests_before_it() -> None:
    """All share a connection, and a controller without power lets each of them try to connect for long."""

    class Silent:
        async def connect(self, *arguments: Any) -> Any:
            await asyncio.Event().wait()

    async def run() -> None:
        channel = RemoteChannel(ControllerLinks(NodeLinks(cast(Any, Silent())), 1), lambda: THERE)
        answers = await asyncio.gather(*(channel.call(REQUEST, 25_000) for _ in range(10)), return_exceptions=True)
        assert [cast(KafkaError, each).code for each in answers] == [ErrorCode.REQUEST_TIMED_OUT] * 10
        assert asyncio.get_running_loop().time() < 26

    virtual(run())


def test_leader_that_is_elected_later_is_asked() -> None:
    async def run() -> None:
        node = FakeNode({AllocateProducerIdsRequest: one_by_one(BLOCK)})
        leaders = [None, None, Address(4, "nobody", 9093), THERE]
        channel = channel_to(node, lambda: leaders.pop(0) if len(leaders) > 1 else leaders[0])
        assert (await channel.call(REQUEST)).producer_id_start == 7000

    asyncio.run(run())


@pytest.mark.parametrize("answer", [NOT_CONTROLLER, HANG_UP, None], ids=["not controller", "hangs up", "silent"])
def test_timeout_ends_the_retries(answer: object) -> None:
    async def run() -> None:
        node = FakeNode({AllocateProducerIdsRequest: one_by_one(answer)})
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(KafkaError, match="no controller has answered AllocateProducerIds within 200 ms") as refused:
            await channel_to(node).call(REQUEST, 200)
        assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT
        assert asyncio.get_running_loop().time() - began_s >= 0.19

    asyncio.run(run())


@pytest.mark.parametrize(
    ("leader", "said"),
    [
        (None, r"\(no controller is known\)\. Nothing was changed: see that a majority"),
        (THERE, "It may still take effect"),
        (Address(4, "nobody", 9093), "Nothing was changed"),
    ],
    ids=["none known", "silent", "down"],
)
def test_timeout_says_whether_the_request_can_have_had_an_effect(leader: Address | None, said: str) -> None:
    async def run() -> None:
        node = FakeNode({AllocateProducerIdsRequest: one_by_one(None)})
        with pytest.raises(KafkaError, match=said):
            await channel_to(node, lambda: leader).call(REQUEST, 200)

    asyncio.run(run())


@pytest.mark.parametrize("leader", [None, THERE])
def test_timeout_of_a_read_says_nothing_of_changes(leader: Address | None) -> None:
    async def run() -> None:
        node = FakeNode({EnvelopeRequest: one_by_one(None)})
        context = context_of(image_of([], {}), ApiKey.LIST_PARTITION_REASSIGNMENTS, 0)
        with pytest.raises(KafkaError) as refused:
            await channel_to(node, lambda: leader).forward(
                ForwardedRequest.of(context, ListPartitionReassignmentsRequest()), 100
            )
        assert str(refused.value).endswith("see that a majority of the controllers is up")
        assert "change" not in str(refused.value)
        assert "effect" not in str(refused.value)

    asyncio.run(run())


def test_controller_that_is_no_longer_known_is_not_the_reason() -> None:
    async def run() -> None:
        leaders = [Address(4, "nobody", 9093), None]
        channel = channel_to(FakeNode({}), lambda: leaders.pop(0) if len(leaders) > 1 else leaders[0])
        with pytest.raises(KafkaError, match="no controller is known"):
            await channel.call(REQUEST, 200)

    asyncio.run(run())


def test_request_to_a_silent_controller_is_sent_again_when_another_is_elected() -> None:
    async def run() -> None:
        node = FakeNode({AllocateProducerIdsRequest: one_by_one(None, BLOCK)})
        leaders = [THERE, None, THERE._replace(epoch=1)]
        channel = channel_to(node, lambda: leaders.pop(0) if len(leaders) > 1 else leaders[0])
        assert (await channel.call(REQUEST, 60_000)).producer_id_start == 7000
        assert node.connections == 2

    asyncio.run(run())


def test_refusal_is_an_error_and_not_sent_again() -> None:
    async def run() -> None:
        refusal = AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        node = FakeNode({AllocateProducerIdsRequest: one_by_one(refusal)})
        with pytest.raises(KafkaError, match="refused AllocateProducerIds: STALE_BROKER_EPOCH") as refused:
            await channel_to(node).call(REQUEST)
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
        assert len(node.asked_for(AllocateProducerIdsRequest)) == 1

    asyncio.run(run())


def test_clients_request_travels_in_an_envelope() -> None:
    async def run() -> None:
        response = DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_code=ErrorCode.NONE)])
        busy = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        node = FakeNode({EnvelopeRequest: one_by_one(busy, wrap_response(response, 4, 1))})
        context = context_of(image_of([], {}), ApiKey.DELETE_TOPICS, 4)
        answer = await channel_to(node).forward(ForwardedRequest.of(context, DeleteTopicsRequest(topic_names=["t"])), 30_000)
        assert [each.name for each in answer.responses] == ["t"]
        first, second = node.asked_for(EnvelopeRequest)
        assert first == second
        header, inside = parse_request(bytes(second.request_data))
        assert (header.request_api_version, inside.topic_names) == (4, ["t"])
        assert str(decode_principal(second.request_principal)) == "User:ANONYMOUS"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (EnvelopeResponse(response_data=b"\0"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_envelope_without_a_response_is_an_error(envelope: EnvelopeResponse, code: int) -> None:
    async def run() -> None:
        node = FakeNode({EnvelopeRequest: one_by_one(envelope)})
        context = context_of(image_of([], {}), ApiKey.DELETE_TOPICS, 4)
        with pytest.raises(KafkaError) as refused:
            await channel_to(node).forward(ForwardedRequest.of(context, DeleteTopicsRequest(topic_names=["t"])))
        assert refused.value.code == code

    asyncio.run(run())


class Own(DecidingController):
    """The controller of the same node."""

    node_id = 1
    is_active = True


def test_own_controller_is_asked_while_it_is_active() -> None:
    async def run() -> None:
        own, node = Own(), FakeNode({AllocateProducerIdsRequest: one_by_one(BLOCK)})
        epoch = own.cluster.register(1)
        channel = channel_to(node, own=own)
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
        assert (await channel.call(request)).producer_id_start == 0
        with pytest.raises(KafkaError) as refused:
            await channel.call(REQUEST)
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
        assert not node.asked
        own.is_active = False
        assert (await channel.call(request)).producer_id_start == 7000

    asyncio.run(run())


def test_request_goes_to_the_new_leader_when_the_own_controller_loses_the_lead() -> None:
    async def run() -> None:
        own, node = Own(), FakeNode({AllocateProducerIdsRequest: one_by_one(BLOCK)})
        own.refusal = KafkaError(ErrorCode.NOT_CONTROLLER, "no longer")
        leaders = [Address(1, "own", 9093), THERE]

        def leader() -> Address | None:
            own.is_active = False
            return leaders.pop(0) if len(leaders) > 1 else leaders[0]

        waiting = asyncio.ensure_future(channel_to(node, leader, own=own).call(REQUEST))
        await asyncio.sleep(0.01)
        own.is_active = False
        assert (await waiting).producer_id_start == 7000

    asyncio.run(run())


FIRST, SECOND = Address(3, "three", 9093), Address(4, "four", 9093)
HEARTBEAT = BrokerHeartbeatRequest(broker_id=1)


def node() -> FakeNode:
    return FakeNode(
        {
            BrokerRegistrationRequest: lambda request, version: BrokerRegistrationResponse(broker_epoch=5),
            BrokerHeartbeatRequest: lambda request, version: BrokerHeartbeatResponse(),
            AllocateProducerIdsRequest: lambda request, version: AllocateProducerIdsResponse(),
            EnvelopeRequest: lambda request, version: EnvelopeResponse(response_data=b"x"),
        }
    )


def scene(work: Callable[[ControllerLinks, FakeNode, FakeNode], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        first, second = node(), node()
        links = ControllerLinks(NodeLinks(FakeNetwork({FIRST[1:3]: first, SECOND[1:3]: second})), 1)
        await work(links, first, second)
        links.close()

    asyncio.run(run())


def test_each_purpose_has_a_connection_of_its_own() -> None:
    async def work(links: ControllerLinks, first: FakeNode, second: FakeNode) -> None:
        requests = [BrokerRegistrationRequest(), HEARTBEAT, AllocateProducerIdsRequest(), EnvelopeRequest(), HEARTBEAT]
        await asyncio.gather(*(links.ask(FIRST, request, 30_000) for request in requests))
        assert first.connections == 3
        assert first.client_ids == {"broker-1-heartbeat", "broker-1-producer-ids", "broker-1-forwarding"}

    scene(work)


def test_controller_in_a_new_epoch_gets_new_connections() -> None:
    async def work(links: ControllerLinks, first: FakeNode, second: FakeNode) -> None:
        for epoch in (1, 1, 2):
            await links.ask(FIRST._replace(epoch=epoch), HEARTBEAT, 30_000)
        assert first.connections == 2

    scene(work)


def test_moved_controller_gets_new_connections() -> None:
    async def work(links: ControllerLinks, first: FakeNode, second: FakeNode) -> None:
        for address in (FIRST, FIRST, SECOND, SECOND, FIRST):
            await links.ask(address, HEARTBEAT, 30_000)
        assert (first.connections, second.connections) == (2, 1)

    scene(work)


def test_lost_connection_is_opened_again() -> None:
    async def work(links: ControllerLinks, first: FakeNode, second: FakeNode) -> None:
        answer = first.handlers[BrokerHeartbeatRequest]
        first.handlers[BrokerHeartbeatRequest] = lambda request, version: HANG_UP
        with pytest.raises(LinkError):
            await links.ask(FIRST, HEARTBEAT, 30_000)
        first.handlers[BrokerHeartbeatRequest] = answer
        await links.ask(FIRST, HEARTBEAT, 30_000)
        assert first.connections == 2

    scene(work)


def channel_of(controller: DecidingController) -> ControllerChannel:
    return LocalChannel(services_of(controller))


def test_own_request_is_decided_in_the_newest_version() -> None:
    controller = DecidingController()
    epoch = controller.cluster.register(1)
    block = asyncio.run(channel_of(controller).call(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)))
    assert block.producer_id_len == 1000
    assert controller.versions == [0]
    with pytest.raises(KafkaError) as refused:
        asyncio.run(channel_of(controller).call(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch + 1)))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_clients_request_is_decided_in_its_version() -> None:
    controller = DecidingController()
    context = context_of(controller.cluster.state.image, ApiKey.DELETE_TOPICS, 4)
    response = asyncio.run(
        channel_of(controller).forward(ForwardedRequest.of(context, DeleteTopicsRequest(topic_names=["absent"])))
    )
    assert [each.error_code for each in response.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert controller.versions == [4]
