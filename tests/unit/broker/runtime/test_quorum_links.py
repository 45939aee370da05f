"""Outbound connections of a replica: made on first use, again after a failure, closed with their owner."""

import asyncio

import pytest
from tests.support.servers.kafka_server import free_ports

from ottla.broker.runtime.quorum_links import QuorumLinks
from ottla.env.real.world import real_world
from ottla.link import ConnectFailed
from ottla.raft.effects import Destination
from ottla.wire.messages.vote import VoteRequest


def test_an_unreachable_node_fails_each_request() -> None:
    async def run() -> None:
        (port,) = free_ports(1)
        with real_world() as world:
            links = QuorumLinks(world.network, "raft-client-1", 1000)
            for _ in range(2):
                with pytest.raises(ConnectFailed, match="nothing listens"):
                    await links.request(Destination(2, "127.0.0.1", port), VoteRequest())
            links.close()

    asyncio.run(run())
