"""Connections that are cut: nothing passes, nothing is lost, nothing is closed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.env.net import Stream
from ottla.env.real.net import RealNetwork
from ottla.testing.cluster.cuts import CLIENTS
from ottla.testing.cluster.network import CuttableNetwork

WAIT_S = 30
MOMENT_S = 0.05
"""Long enough on loopback for bytes that are not held back."""


class Side:
    """The owner of one end of a connection."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.stream: Stream | None = None
        self.is_ended = False
        self.drains = 0
        self._buffer = bytearray(4096)

    def buffer(self) -> memoryview:
        return memoryview(self._buffer)

    def received(self, count: int) -> None:
        self.data += self._buffer[:count]

    def drained(self) -> None:
        self.drains += 1

    def ended(self, error: OSError | None) -> None:
        self.is_ended = True

    async def has(self, data: bytes) -> None:
        async with asyncio.timeout(WAIT_S):
            while bytes(self.data) != data:
                await asyncio.sleep(0.001)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


@asynccontextmanager
async def accepted_by_node() -> AsyncIterator[tuple[CuttableNetwork, Side, Side]]:
    """A node's end of a client's connection, and the client's end."""
    plain, node, client = RealNetwork(), Side(), Side()

    def accept(stream: Stream) -> Side:
        node.stream = stream
        stream.resume()
        return node

    probe = await plain.listen("127.0.0.1", 0, lambda _: None)
    port = probe.address[1]
    probe.close()
    network = CuttableNetwork(plain, {}, port)
    listener = await network.listen("127.0.0.1", port, accept)
    client.stream = await plain.connect("127.0.0.1", port, client)
    client.stream.resume()
    async with asyncio.timeout(WAIT_S):
        while node.stream is None:
            await asyncio.sleep(0.001)
    try:
        yield network, node, client
    finally:
        listener.close()
        client.stream.close()
        await asyncio.sleep(0)


def test_what_is_received_waits_until_the_cut_is_healed() -> None:
    async def test() -> None:
        async with accepted_by_node() as (network, node, client):
            assert client.stream is not None
            network.block({CLIENTS: [True, False]})
            client.stream.send([b"one"])
            await asyncio.sleep(MOMENT_S)
            assert not node.data
            network.block({})
            await node.has(b"one")

    run(test)


def test_what_is_sent_waits_and_keeps_its_order() -> None:
    async def test() -> None:
        async with accepted_by_node() as (network, node, client):
            assert node.stream is not None
            network.block({CLIENTS: [False, True]})
            node.stream.send([b"one", b"two"])
            node.stream.send([b"three"])
            assert node.stream.unsent_bytes == 11
            await asyncio.sleep(MOMENT_S)
            assert not client.data
            network.block({})
            node.stream.send([b"four"])
            await client.has(b"onetwothreefour")
            assert node.stream.unsent_bytes == 0
            assert node.drains == 1

    run(test)


def test_a_one_way_cut_lets_the_other_way_through() -> None:
    async def test() -> None:
        async with accepted_by_node() as (network, node, client):
            assert node.stream is not None
            assert client.stream is not None
            network.block({CLIENTS: [True, False]})
            client.stream.send([b"request"])
            node.stream.send([b"reply"])
            await client.has(b"reply")
            assert not node.data

    run(test)


def test_the_owners_own_pause_outlasts_a_cut() -> None:
    async def test() -> None:
        async with accepted_by_node() as (network, node, client):
            assert node.stream is not None
            assert client.stream is not None
            node.stream.pause()
            network.block({CLIENTS: [True, True]})
            client.stream.send([b"one"])
            network.block({})
            await asyncio.sleep(MOMENT_S)
            assert not node.data
            node.stream.resume()
            await node.has(b"one")

    run(test)


def test_the_end_of_a_connection_is_reported_once_and_forgotten() -> None:
    async def test() -> None:
        async with accepted_by_node() as (network, node, client):
            assert client.stream is not None
            client.stream.close()
            async with asyncio.timeout(WAIT_S):
                while not node.is_ended:
                    await asyncio.sleep(0.001)
            assert not network.streams

    run(test)


def test_connecting_to_a_node_that_is_cut_off_waits() -> None:
    async def test() -> None:
        plain, other, mine = RealNetwork(), Side(), Side()

        def accept(stream: Stream) -> Side:
            other.stream = stream
            stream.resume()
            return other

        listener = await plain.listen("127.0.0.1", 0, accept)
        port = listener.address[1]
        network = CuttableNetwork(plain, {port: "2"}, 0)
        network.block({"2": [True, False]})
        connecting = asyncio.ensure_future(network.connect("127.0.0.1", port, mine))
        await asyncio.sleep(MOMENT_S)
        assert not connecting.done()
        network.block({})
        stream = await asyncio.wait_for(connecting, WAIT_S)
        stream.send([b"hello"])
        await other.has(b"hello")
        network.block({"2": [False, True]})
        stream.send([b" again"])
        await asyncio.sleep(MOMENT_S)
        assert other.data == b"hello"
        network.block({})
        await other.has(b"hello again")
        listener.close()
        stream.close()
        await asyncio.sleep(0)

    run(test)


def test_other_addresses_are_never_held_back() -> None:
    async def test() -> None:
        plain, mine = RealNetwork(), Side()
        network = CuttableNetwork(plain, {}, 0)
        network.block({"2": [True, True], CLIENTS: [True, True]})
        listener = await network.listen("127.0.0.1", 0, lambda _: None)
        stream = await network.connect("127.0.0.1", listener.address[1], mine)
        stream.close()
        listener.close()
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            await network.connect("127.0.0.1", listener.address[1], mine)

    run(test)
