"""Connections to the controller: one per purpose, opened again when needed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNetwork, FakeNode

from ottla.broker.channel.links import Address, ControllerLinks
from ottla.link import LinkError
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

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
        links = ControllerLinks(FakeNetwork({FIRST[1:3]: first, SECOND[1:3]: second}), 1)
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
