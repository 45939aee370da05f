"""The connection pool over a network in memory: shared attempts, backoff, bootstrap addresses, idle connections."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNetwork, FakeNode, FakeStream

from ottla.client.connections import BOOTSTRAP_ID, CANONICAL, ConnectionPool, kafka_error
from ottla.client.world import ClientWorld
from ottla.client_core.machine import ANY_NODE, CONTROLLER, Channel
from ottla.client_core.metadata import Metadata, Node
from ottla.env.net import DEFAULT_OPTIONS, SocketOptions, StreamOwner
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.env.tls import TlsOptions
from ottla.errors import KafkaError, NetworkError, TimeoutError, UnsupportedVersionError
from ottla.link import ConnectFailed, LinkEnded, LinkError, LinkOptions, NoCommonVersion, RequestTimedOut
from ottla.sim.world import SeededRandomness
from ottla.wire.base import EncodeError
from ottla.wire.messages.metadata import MetadataRequest

T = TypeVar("T")
BOOTSTRAP = ("first", 9092)


@dataclass
class Settings:
    metadata_max_age_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    connections_max_idle_ms: int = 540_000
    reconnect_backoff_ms: int = 20
    reconnect_backoff_max_ms: int = 100
    socket_connection_setup_timeout_ms: int = 2_000
    socket_connection_setup_timeout_max_ms: int = 4_000
    metadata_recovery_strategy: str = "rebootstrap"
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    client_dns_lookup: str = "use_all_dns_ips"


class Place:
    """A pool with its metadata and fake nodes."""

    def __init__(self, nodes: dict[tuple[str, int], FakeNode], settings: Settings) -> None:
        randomness = SeededRandomness(Random(1))
        self.network = FakeNetwork(nodes)
        world = ClientWorld(RealClock(), self.network, randomness, RealThreads())
        self.metadata = Metadata(settings, randomness.below)
        self.pool = ConnectionPool(world, settings, [BOOTSTRAP], LinkOptions(), self.metadata)


def run(script: Callable[[Place], Awaitable[T]], nodes: dict[tuple[str, int], FakeNode], settings: Settings | None = None) -> T:
    async def body() -> T:
        place = Place(nodes, settings or Settings())
        try:
            return await script(place)
        finally:
            place.pool.close()

    return asyncio.run(body())


def test_callers_at_the_same_time_share_one_attempt() -> None:
    node = FakeNode({})

    async def script(place: Place) -> None:
        first, second = await asyncio.gather(place.pool.link(BOOTSTRAP_ID), place.pool.link(BOOTSTRAP_ID))
        assert first is second

    run(script, {BOOTSTRAP: node})
    assert node.connections == 1


def test_each_channel_has_its_own_connection() -> None:
    node = FakeNode({})

    async def script(place: Place) -> None:
        data = await place.pool.link(BOOTSTRAP_ID)
        assert await place.pool.link(BOOTSTRAP_ID, Channel.FETCH) is not data

    run(script, {BOOTSTRAP: node})
    assert node.connections == 2


def test_a_failed_attempt_delays_the_next_and_explains_the_address() -> None:
    async def script(place: Place) -> float:
        place.metadata.nodes = {7: Node(7, "gone", 9092)}
        with pytest.raises(
            ConnectFailed, match=r"broker 7 at gone:9092 does not answer: start it, or check its advertised\.listeners"
        ):
            await place.pool.link(7)
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(ConnectFailed):
            await place.pool.link(7)
        return asyncio.get_running_loop().time() - began_s

    assert run(script, {}) >= 0.015


def test_a_node_that_was_connected_is_down_and_its_address_not_wrong() -> None:
    async def script(place: Place) -> str:
        place.metadata.nodes = {7: Node(7, "there", 9092)}
        (await place.pool.link(7)).close()
        place.network.nodes.clear()
        with pytest.raises(ConnectFailed) as caught:
            await place.pool.link(7)
        return str(caught.value)

    assert "tells its clients" not in run(script, {("there", 9092): FakeNode({})})


@pytest.mark.parametrize("is_known", [False, True])
def test_login_is_suggested_only_before_a_broker_has_answered(is_known: bool) -> None:
    async def script(place: Place) -> str:
        if is_known:
            place.metadata.nodes = {7: Node(7, "first", 9092)}
        link = await place.pool.link(7 if is_known else BOOTSTRAP_ID)
        with pytest.raises(LinkEnded) as ended:
            await link.request(MetadataRequest(topics=[]))
        return str(ended.value)

    node = FakeNode({MetadataRequest: lambda request, version: HANG_UP})
    said = run(script, {BOOTSTRAP: node})
    assert ("If this listener wants a login" in said) == (not is_known)


def test_the_bootstrap_address_is_used_until_nodes_are_known() -> None:
    async def script(place: Place) -> None:
        assert place.pool.resolve(ANY_NODE) == BOOTSTRAP_ID
        place.metadata.nodes = {1: Node(1, "one", 9092)}
        assert place.pool.resolve(ANY_NODE) == 1
        assert place.pool.resolve(5) == 5
        place.metadata.controller_id = 1
        assert place.pool.resolve(CONTROLLER) == 1

    run(script, {})


@pytest.mark.parametrize(("strategy", "expected"), [("rebootstrap", BOOTSTRAP_ID), ("none", 1)])
def test_bootstrap_addresses_return_when_no_known_node_can_be_reached(strategy: str, expected: int) -> None:
    async def script(place: Place) -> int:
        place.metadata.nodes = {1: Node(1, "gone", 9092)}
        with pytest.raises(ConnectFailed):
            await place.pool.link(1)
        return place.pool.resolve(ANY_NODE)

    assert run(script, {BOOTSTRAP: FakeNode({})}, Settings(metadata_recovery_strategy=strategy)) == expected


def test_a_rebootstrap_closes_connections_and_ends_attempts() -> None:
    class Hanging(FakeNetwork):
        async def connect(self, host: str, *arguments: Any, **options: Any) -> FakeStream:
            if host == "hangs":
                await asyncio.Event().wait()
            return await super().connect(host, *arguments, **options)

    async def script(place: Place) -> None:
        place.pool._world = place.pool._world._replace(network=Hanging(place.network.nodes))
        place.metadata.nodes = {1: Node(1, "one", 9092), 2: Node(2, "hangs", 9092)}
        links = [await place.pool.link(node_id) for node_id in (BOOTSTRAP_ID, 1)]
        waiting = asyncio.create_task(place.pool.link(2))
        await asyncio.sleep(0)
        place.metadata.nodes = {}
        place.pool.rebootstrap("a test")
        assert all(link.is_over for link in links)
        with pytest.raises(ConnectFailed, match="starts again from its bootstrap servers"):
            await asyncio.wait_for(waiting, 30)
        assert not place.pool.is_open(BOOTSTRAP_ID)
        assert await place.pool.link(place.pool.resolve(ANY_NODE)) is not links[0]

    run(script, {BOOTSTRAP: FakeNode({}), ("one", 9092): FakeNode({})})


def test_a_cancelled_caller_stays_cancelled_during_a_rebootstrap() -> None:
    async def script(place: Place) -> None:
        waiting = asyncio.create_task(place.pool.link(BOOTSTRAP_ID))
        await asyncio.sleep(0)
        waiting.cancel()
        place.pool.rebootstrap("a test")
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(script, {BOOTSTRAP: FakeNode({})})


def test_each_attempt_begins_with_another_address_of_the_host() -> None:
    firsts: list[int] = []

    class Watched(FakeNetwork):
        async def connect(
            self,
            host: str,
            port: int,
            owner: StreamOwner,
            options: SocketOptions = DEFAULT_OPTIONS,
            tls: TlsOptions | None = None,
        ) -> FakeStream:
            firsts.append(options.first_address)
            return await super().connect(host, port, owner, options, tls)

    async def script(place: Place) -> None:
        place.pool._world = place.pool._world._replace(network=Watched({}))
        for _ in range(3):
            with pytest.raises(ConnectFailed):
                await place.pool.link(BOOTSTRAP_ID)

    run(script, {})
    assert firsts == [0, 1, 2]


@pytest.mark.parametrize(("lookup", "connected"), [("use_all_dns_ips", "first"), (CANONICAL, "two.example")])
def test_bootstrap_servers_are_connected_to_by_their_canonical_names_if_so_set(lookup: str, connected: str) -> None:
    nodes = {BOOTSTRAP: FakeNode({}), ("two.example", 9092): FakeNode({}), ("broker", 9092): FakeNode({})}

    async def script(place: Place) -> None:
        place.network.canonical = {"first": ["one.example", "two.example"], "broker": ["other.example"]}
        place.metadata.nodes = {1: Node(1, "broker", 9092)}
        assert (await place.pool.link(BOOTSTRAP_ID)).host == connected
        assert (await place.pool.link(1)).host == "broker", "only bootstrap servers"

    run(script, nodes, Settings(client_dns_lookup=lookup))


def test_a_bootstrap_server_without_canonical_names_is_connected_to_as_given() -> None:
    class Unknown(FakeNetwork):
        async def canonical_names(self, host: str) -> list[str]:
            raise OSError("no such name")

    async def script(place: Place) -> None:
        place.pool._world = place.pool._world._replace(network=Unknown(place.network.nodes))
        assert (await place.pool.link(BOOTSTRAP_ID)).host == "first"

    run(script, {BOOTSTRAP: FakeNode({})}, Settings(client_dns_lookup=CANONICAL))


def test_an_open_connection_is_preferred_to_a_new_one() -> None:
    nodes = {("one", 9092): FakeNode({}), ("two", 9092): FakeNode({})}

    async def script(place: Place) -> None:
        place.metadata.nodes = {1: Node(1, "one", 9092), 2: Node(2, "two", 9092)}
        await place.pool.link(2)
        assert {place.pool.resolve(ANY_NODE) for _ in range(10)} == {2}

    run(script, nodes)


def test_a_node_that_fails_on_one_connection_comes_after_the_others() -> None:
    async def script(place: Place) -> None:
        pool = place.pool
        place.metadata.nodes = {1: Node(1, *BOOTSTRAP), 2: Node(2, "two", 9092)}
        await pool.link(BOOTSTRAP_ID)
        await pool.link(1)
        fetching = await pool.link(1, Channel.FETCH)
        assert pool.any_node() == BOOTSTRAP_ID
        fetching.close()  # as after a request that timed out
        assert pool.any_node() == 2, "its other connections, under both of its ids, are not trusted"
        assert pool.open_link(1, Channel.FETCH) is None
        assert pool.any_node() == 2, "nor are they while it is connected to again"
        await pool.link(2)
        assert pool.any_node() == 2
        await pool.link(1, Channel.FETCH)
        assert pool.any_node() == BOOTSTRAP_ID, "it answers again"
        fetching = await pool.link(1, Channel.FETCH)
        fetching.close()
        place.metadata.nodes = {1: Node(1, *BOOTSTRAP)}
        assert pool.any_node() == BOOTSTRAP_ID, "there is no other"

    run(script, {BOOTSTRAP: FakeNode({}), ("two", 9092): FakeNode({})})


def test_bootstrap_connection_is_found_by_the_address_of_a_node() -> None:
    async def script(place: Place) -> None:
        place.metadata.nodes = {1: Node(1, *BOOTSTRAP), 2: Node(2, "two", 9092)}
        assert place.pool.bootstrap_link(1) is None, "not open yet"
        link = await place.pool.link(BOOTSTRAP_ID)
        assert place.pool.bootstrap_link(1) is link
        assert place.pool.bootstrap_link(1, Channel.FETCH) is None
        assert place.pool.bootstrap_link(2) is place.pool.bootstrap_link(3) is None

    run(script, {BOOTSTRAP: FakeNode({})})


def test_idle_connections_are_closed() -> None:
    async def script(place: Place) -> None:
        link = await place.pool.link(BOOTSTRAP_ID)
        while not link.is_over:
            await asyncio.sleep(0.01)
        assert place.pool.open_link(BOOTSTRAP_ID) is None
        assert await place.pool.link(BOOTSTRAP_ID) is not link

    run(script, {BOOTSTRAP: FakeNode({})}, Settings(connections_max_idle_ms=50))


def test_asking_whether_a_connection_is_open_does_not_keep_it_open() -> None:
    async def script(place: Place) -> None:
        assert not place.pool.is_open(BOOTSTRAP_ID)
        await place.pool.link(BOOTSTRAP_ID)
        assert place.pool.is_open(BOOTSTRAP_ID)
        async with asyncio.timeout(30):
            while place.pool.is_open(BOOTSTRAP_ID):
                await asyncio.sleep(0.005)

    run(script, {BOOTSTRAP: FakeNode({})}, Settings(connections_max_idle_ms=50))


def test_a_closed_pool_opens_nothing() -> None:
    async def script(place: Place) -> None:
        place.pool.close()
        with pytest.raises(ConnectFailed, match="closed"):
            await place.pool.link(BOOTSTRAP_ID)

    run(script, {BOOTSTRAP: FakeNode({})})


# Failures of connections as errors: what can be retried, and what never left.


@pytest.mark.parametrize(
    ("failure", "kind", "is_retriable", "is_unsent"),
    [
        (ConnectFailed("h:1", "nothing listens"), NetworkError, True, True),
        (LinkEnded("h:1", "closed"), NetworkError, True, False),
        (RequestTimedOut("h:1", "no answer"), TimeoutError, True, False),
        (NoCommonVersion("h:1", "too old"), UnsupportedVersionError, False, False),
        (EncodeError("Field", "too large"), UnsupportedVersionError, False, False),
    ],
)
def test_a_failure_becomes_the_error_of_its_kind(
    failure: LinkError | EncodeError, kind: type[KafkaError], is_retriable: bool, is_unsent: bool
) -> None:
    error = kafka_error(failure)
    assert type(error) is kind
    assert (error.is_retriable, error.is_unsent) == (is_retriable, is_unsent)
    assert str(error) == str(failure)
