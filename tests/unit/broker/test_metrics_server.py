"""Metrics over HTTP: responses, closed connections, and the bound on what a peer can make the node hold."""

import asyncio
import gzip
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest
from tests.support.nodes.streams import Recorder

from ottla.broker.metrics_server import CONNECTIONS_MAX, FIRST_REQUEST_S, HEAD_BYTES_MAX, IDLE_S, MetricsServer
from ottla.env import AddressRefused
from ottla.errors import ArgumentError
from ottla.link import Link, PeerFault
from ottla.metrics_text import MetricsText
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
PAGE = b"a 1\nb 2\n"


class Client:
    """One connection to the server."""

    def __init__(self, network: SimNetwork) -> None:
        self._network = network
        self.got = Recorder()

    async def connect(self, port: int) -> "Client":
        self.stream = await self._network.host("client").connect("node", port, self.got)
        self.stream.resume()
        return self

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, content) of the answer to one request."""
        start = len(self.got.data)
        self.stream.send([request])
        await self.got.until(lambda: b"\r\n\r\n" in self.got.data[start:], "a head")
        head, _, _ = bytes(self.got.data[start:]).partition(b"\r\n\r\n")
        line, *fields = head.decode().split("\r\n")
        headers = dict(field.split(": ") for field in fields)
        length = 0 if request.startswith(b"HEAD") else int(headers["Content-Length"])
        await self.got.until_received(start + len(head) + 4 + length)
        return int(line.split()[1]), headers, bytes(self.got.data[start + len(head) + 4 :])


class Patient:
    """A node with nothing wrong, until a test says what is."""

    broken: str | None = None
    reasons: tuple[str, ...] = ()

    def failure(self) -> str | None:
        return self.broken

    def unready(self, with_isr: bool = False) -> list[str]:
        return [*self.reasons, *(["not in sync"] if with_isr else [])]


def scene(play: Callable[[SimNetwork, MetricsServer], Coroutine[Any, Any, None]], page: bytes = PAGE) -> None:
    async def whole() -> None:
        network = SimNetwork()

        async def gather(text: MetricsText, query: Mapping[str, str]) -> None:
            await asyncio.sleep(0.01)
            if page == b"broken":
                raise ValueError("broken")
            if "flavour" in query:
                raise ArgumentError(f"there is no {query}")
            text._lines.append(page.decode())

        server = await MetricsServer.start(network.host("node"), "node", 0, Patient())
        server.pages = {"/metrics": gather, "/metrics/groups": gather}
        await play(network, server)
        await server.stop()

    VirtualLoop().run(whole())


def test_the_page_again_and_again_on_one_connection() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        for path in (b"/metrics", b"/metrics?x=1"):
            status, headers, content = await client.ask(GET.replace(b"/metrics", path))
            assert (status, content) == (200, PAGE)
            assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert headers["Connection"] == "keep-alive"
        status, headers, content = await client.ask(GET.replace(b"GET", b"HEAD"))
        assert (status, headers["Content-Length"], content) == (200, str(len(PAGE)), b"")
        assert (await client.ask(GET))[2] == PAGE

    scene(play)


@pytest.mark.parametrize(
    ("request_", "status", "is_last"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 200, False),
        (b"GET /other HTTP/1.1\r\n\r\n", 404, False),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", 405, False),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405, True),
        (b"GET /metrics HTTP/1.1\r\nConnection: Close\r\n\r\n", 200, True),
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200, True),
        (b"nonsense\r\n\r\n", 400, True),
        (b"\x16\x03\x01\x00\xa5\x01\r\n\r\n", 400, True),
        (b"GET /metrics HTTP/2\r\n\r\n", 400, True),
        (b"x" * (HEAD_BYTES_MAX + 1), 431, True),
    ],
)
def test_other_requests(request_: bytes, status: int, is_last: bool) -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        found, headers, _ = await client.ask(request_)
        assert (found, headers["Connection"]) == (status, "close" if is_last else "keep-alive")
        if is_last:
            assert await client.got.until_ended() is None
        else:
            assert (await client.ask(GET))[0] == 200

    scene(play)


def test_kafka_client_learns_at_once_that_the_port_speaks_http() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        begun_s = asyncio.get_running_loop().time()
        with pytest.raises(PeerFault, match=r"speaks HTTP.*metrics port.*port of a Kafka listener"):
            await Link.connect(network.host("client"), "node", server.port)
        assert asyncio.get_running_loop().time() - begun_s < 1

    scene(play)


def test_a_request_in_many_pieces_and_several_at_once() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        for byte in GET[:-1]:
            client.stream.send([bytes([byte])])
        assert (await client.ask(GET[-1:]))[2] == PAGE
        client.stream.send([GET * 5])
        await client.got.until(lambda: client.got.data.count(PAGE) == 6, "six pages")

    scene(play)


def test_peer_that_does_not_read_gets_no_second_page() -> None:
    page = b"x" * 200_000

    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        client.stream.pause()
        client.stream.send([GET * 20])
        await asyncio.sleep(10)
        [connection] = server._connections
        assert connection._stream.unsent_bytes <= len(page) + 1000
        client.stream.resume()
        await client.got.until(lambda: client.got.data.count(b"HTTP/1.1 200") == 20, "all of them", 600)

    scene(play, page)


def test_idle_and_surplus_connections_are_closed() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        silent = await Client(network).connect(server.port)
        client = await Client(network).connect(server.port)
        assert (await client.ask(GET))[0] == 200
        await asyncio.sleep(FIRST_REQUEST_S + 1)
        assert "ended" in silent.got.events
        await asyncio.sleep(IDLE_S - FIRST_REQUEST_S - 2)
        assert (await client.ask(GET))[0] == 200
        await asyncio.sleep(IDLE_S + 1)
        assert "ended" in client.got.events

    scene(play)


def test_silent_connections_do_not_lock_others_out() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        prometheus = await Client(network).connect(server.port)
        crowd = [await Client(network).connect(server.port) for _ in range(CONNECTIONS_MAX - 1)]
        assert (await prometheus.ask(GET))[0] == 200
        late = [await Client(network).connect(server.port) for _ in range(CONNECTIONS_MAX - 1)]
        for client in (late[-1], prometheus):  # those that have asked last are kept
            assert (await client.ask(GET))[0] == 200
        for client in crowd:
            await client.got.until_ended()
        assert len(server._connections) == CONNECTIONS_MAX

    scene(play)


def test_a_connection_that_waits_for_its_page_is_not_replaced() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        crowd = [await Client(network).connect(server.port) for _ in range(CONNECTIONS_MAX)]
        asked = [asyncio.ensure_future(client.ask(GET)) for client in crowd]
        await asyncio.sleep(0.005)
        surplus = await Client(network).connect(server.port)
        await surplus.got.until_ended()
        assert [(await answer)[0] for answer in asked] == [200] * CONNECTIONS_MAX

    scene(play)


def test_failing_page_is_answered_with_status_500() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        status, _, content = await client.ask(GET)
        assert status == 500
        assert b"log says why" in content

    scene(play, b"broken")


def test_probes_answer_with_the_reasons() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        live, ready = (GET.replace(b"/metrics", path) for path in (b"/healthz", b"/readyz"))
        assert [(await client.ask(each))[::2] for each in (live, ready)] == [(200, b"ok\n")] * 2
        assert isinstance(server.health, Patient)
        server.health.reasons = ("the controller has fenced broker 1", "no controller has answered for 9 s")
        assert (await client.ask(live))[0] == 200
        assert (await client.ask(ready))[::2] == (
            503,
            b"the controller has fenced broker 1\nno controller has answered for 9 s\n",
        )
        isr = await client.ask(GET.replace(b"/metrics", b"/readyz?check=isr"))
        assert isr[2].endswith(b"for 9 s\nnot in sync\n")
        server.health.broken = "all log directories have failed"
        assert (await client.ask(live))[::2] == (503, b"all log directories have failed\n")

    scene(play)


def test_pages_with_a_query_compressed_and_as_openmetrics() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        groups = GET.replace(b"/metrics", b"/metrics/groups")
        assert (await client.ask(groups))[::2] == (200, PAGE)
        status, _, said = await client.ask(GET.replace(b"/metrics", b"/metrics/groups?flavour=x"))
        assert (status, said) == (400, b"there is no {'flavour': 'x'}\n")
        asked = groups.replace(b"\r\n\r\n", b"\r\nAccept-Encoding: gzip\r\nAccept: application/openmetrics-text\r\n\r\n")
        status, headers, said = await client.ask(asked)
        assert (status, headers["Content-Encoding"]) == (200, "gzip")
        assert headers["Content-Type"].startswith("application/openmetrics-text")
        assert gzip.decompress(said) == PAGE + b"# EOF\n"

    scene(play)


def test_node_that_starts_has_health_and_no_metrics() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        server.pages = {}
        client = await Client(network).connect(server.port)
        assert (await client.ask(GET))[::2] == (503, b"The node is starting and has no metrics yet.\n")
        assert (await client.ask(GET.replace(b"/metrics", b"/healthz")))[0] == 200

    scene(play)


def test_peer_that_disconnects_during_the_response() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        client = await Client(network).connect(server.port)
        client.stream.send([GET])
        await asyncio.sleep(0.005)
        client.stream.close()
        await asyncio.sleep(1)
        assert not server._connections

    scene(play)


def test_a_port_that_is_taken() -> None:
    async def play(network: SimNetwork, server: MetricsServer) -> None:
        with pytest.raises(AddressRefused):
            await MetricsServer.start(network.host("node"), "node", server.port, Patient())

    scene(play)
