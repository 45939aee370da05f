"""What only the asyncio face has: cancellation."""

import asyncio

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode

from ottla.client.admin.aio import Admin
from ottla.client.world import real_client_world
from ottla.errors import IllegalStateError
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker


def test_client_stays_usable_after_a_cancelled_call() -> None:
    async def run() -> None:
        asked = asyncio.Event()
        is_silent = True
        broker = MetadataResponseBroker(node_id=1, host="localhost", port=9092)

        def metadata(request: MetadataRequest, version: int) -> MetadataResponse | None:
            asked.set()
            return None if is_silent else MetadataResponse(brokers=[broker], controller_id=1)

        node = FakeNode({MetadataRequest: metadata})
        world = real_client_world()._replace(network=FakeNetwork({("localhost", 9092): node}))
        async with Admin("localhost:9092", world=world, request_timeout_ms=200) as admin:
            call = asyncio.create_task(admin.list_topics())
            await asked.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            is_silent = False
            assert await admin.list_topics() == {}

    asyncio.run(run())


def test_close_ends_calls_of_other_tasks() -> None:
    """Not after default.api.timeout.ms, during which they would try to connect again."""

    async def run() -> None:
        asked = asyncio.Event()

        def metadata(request: MetadataRequest, version: int) -> None:
            asked.set()

        world = real_client_world()._replace(network=FakeNetwork({("localhost", 9092): FakeNode({MetadataRequest: metadata})}))
        admin = Admin("localhost:9092", world=world)
        call = asyncio.create_task(admin.list_topics())
        await asked.wait()
        await admin.close()
        with pytest.raises(IllegalStateError, match="closed during list_topics"):
            await asyncio.wait_for(call, 60)

    asyncio.run(run())
