"""A small HTTP/1.1 server for metrics and health, on the node's own loop.

    GET /metrics    the metrics page; 503 while the node starts
    GET /metrics/groups, /metrics/clients    more pages, each with its own metrics
    GET /healthz    200 while the node works or starts; 503 and the reason when it is broken and has to be started again
    GET /readyz     200 if the node can serve clients; 503 and the reasons, one a line, if it cannot now
    GET /readyz?check=isr    also 503 while a partition here lacks a replica in sync

Pages are in Prometheus's text format, or in OpenMetrics for a scraper that accepts it; compressed for one that takes gzip.

It serves only what Prometheus and probes need: one request after the other on a connection, no request bodies. A connection
that sends too much or too slowly is closed. The node holds at most one page per connection and `CONNECTIONS_MAX` connections: a
new one replaces the one that has been silent the longest, so that silent connections cannot lock others out.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl

from ottla.errors import ArgumentError
from ottla.metrics_text import CONTENT_TYPE, OPENMETRICS, MetricsText

if TYPE_CHECKING:
    from ottla.env import Listener, Network, Stream

logger = logging.getLogger("ottla.metrics")

HEAD_BYTES_MAX = 8192
CONNECTIONS_MAX = 32
FIRST_REQUEST_S = 10.0
"""How long a new connection may take for its first request."""
IDLE_S = 120.0
"""How long a connection is kept between two requests; Prometheus asks at least once a minute."""

GZIP_PIECE_BYTES = 1 << 18
"""So much is compressed in one go, about 3 ms: pages can have 10 MB."""

Page = Callable[[MetricsText, Mapping[str, str]], Awaitable[None]]
"""Writes a page, with the query of its address. Raises `ArgumentError` if that makes no sense."""


class Health(Protocol):
    """What a node says of itself."""

    def failure(self) -> str | None:
        """Why the node cannot go on; None if it can."""
        ...

    def unready(self, with_isr: bool = False) -> list[str]:
        """Why the node cannot serve clients now; empty if it can. `with_isr`: also what is not in sync here."""
        ...


_PLAIN = "text/plain; charset=utf-8"
_FIRST_BYTES = b"\r\n" + bytes(range(0x20, 0x7F))
"""What an HTTP request may begin with. A Kafka request begins with a zero byte, TLS with 0x16."""


class MetricsServer:
    """A listener that answers with metrics and health. Created by `start`."""

    def __init__(self, health: Health) -> None:
        self.pages: Mapping[str, Page] = {}
        """By path; empty while the node starts."""
        self.health = health
        self._listener: Listener | None = None
        self._connections: dict[_Connection, None] = {}
        """In the order of their last response, those without any by their age."""

    @classmethod
    async def start(cls, network: Network, host: str, port: int, health: Health) -> MetricsServer:
        """Listen on `port` (0: any free one); raises `AddressRefused` if that fails."""
        server = cls(health)
        server._listener = await network.listen(host, port, server._accept)
        logger.info("metrics are served at http://%s:%d/metrics", host or "localhost", server.port)
        return server

    @property
    def port(self) -> int:
        assert self._listener is not None, "it was started"
        return self._listener.address[1]

    async def stop(self) -> None:
        """Accept and answer nothing more."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.close()

    def _accept(self, stream: Stream) -> _Connection | None:
        if len(self._connections) >= CONNECTIONS_MAX:
            silent = next((each for each in self._connections if not each.is_answering), None)
            if silent is None:
                return None
            del self._connections[silent]
            silent.close()
        connection = _Connection(stream, self, self._connections)
        self._connections[connection] = None
        return connection


class _Connection:
    """One connection: reads a request's head, answers, reads the next."""

    def __init__(self, stream: Stream, server: MetricsServer, others: dict[_Connection, None]) -> None:
        self._stream = stream
        self._server = server
        self._others = others
        self._head = bytearray()
        self._buffer = bytearray(HEAD_BYTES_MAX)
        self._answering: asyncio.Task[None] | None = None
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(FIRST_REQUEST_S, self.close)
        self._loop.call_soon(stream.resume)

    @property
    def is_answering(self) -> bool:
        return self._answering is not None

    def close(self) -> None:
        self._stream.close()

    # Calls from the stream

    def buffer(self) -> memoryview:
        return memoryview(self._buffer)

    def received(self, count: int) -> None:
        self._head += self._buffer[:count]
        self._read_head()

    def drained(self) -> None:
        self._go_on()

    def ended(self, error: OSError | None) -> None:
        self._is_over = True
        self._timer.cancel()
        self._others.pop(self, None)
        if self._answering is not None:
            self._answering.cancel()

    # Requests

    def _read_head(self) -> None:
        """Answer the next request, if its head is complete."""
        if self._head and self._head[0] not in _FIRST_BYTES:
            # A Kafka or TLS client. It would wait for an answer, and we for the end of a line that never comes.
            self._send(400, _PLAIN, b"This port serves metrics over HTTP.\n", is_last=True)
            return
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            if len(self._head) > HEAD_BYTES_MAX:
                self._send(431, _PLAIN, b"The head of the request is too large.\n", is_last=True)
            return
        head = self._head[:end].decode("latin-1")
        del self._head[: end + 4]
        self._stream.pause()  # until the response is sent, so that a peer cannot make us queue a second page
        self._answering = self._loop.create_task(self._answer(head))

    async def _answer(self, head: str) -> None:
        line, *headers = head.split("\r\n")
        words = line.split(" ")
        fields = {name.strip().lower(): value.strip().lower() for name, _, value in (each.partition(":") for each in headers)}
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            self._send(400, _PLAIN, b"This is no HTTP/1.1 request.\n", is_last=True)
            return
        has_body = fields.get("content-length", "0") != "0" or "transfer-encoding" in fields
        is_last = has_body or fields.get("connection") == "close" or (words[2] == "HTTP/1.0" and "connection" not in fields)
        method, path = words[0], words[1].partition("?")[0]
        query = dict(parse_qsl(words[1].partition("?")[2]))
        content_type, encoding = _PLAIN, ""
        if method not in ("GET", "HEAD"):
            status, content = 405, b"Only GET and HEAD are answered here.\n"
        elif path == "/metrics" or path in self._server.pages:
            is_openmetrics = "application/openmetrics-text" in fields.get("accept", "")
            status, content_type, content = await self._metrics(path, query, is_openmetrics)
            if status == 200 and "gzip" in fields.get("accept-encoding", ""):
                content, encoding = await _gzip(content), "gzip"
        elif path == "/healthz":
            failure = self._server.health.failure()
            status, content = (200, b"ok\n") if failure is None else (503, f"{failure}\n".encode())
        elif path == "/readyz":
            reasons = self._server.health.unready(with_isr=query.get("check") == "isr")
            status, content = (503, "".join(f"{each}\n" for each in reasons).encode()) if reasons else (200, b"ok\n")
        elif path == "/":
            status, content = 200, b"The metrics of an Ottla node are at /metrics, its health at /healthz and /readyz.\n"
        else:
            status, content = 404, b"There is nothing here. The metrics are at /metrics.\n"
        self._send(status, content_type, content, is_last, has_content=method != "HEAD", encoding=encoding)

    async def _metrics(self, path: str, query: Mapping[str, str], is_openmetrics: bool) -> tuple[int, str, bytes]:
        page = self._server.pages.get(path)
        if page is None:
            return 503, _PLAIN, b"The node is starting and has no metrics yet.\n"
        text = MetricsText(is_openmetrics)
        try:
            await page(text, query)
            return 200, OPENMETRICS if is_openmetrics else CONTENT_TYPE, text.encode()
        except ArgumentError as wrong:
            return 400, _PLAIN, f"{wrong}\n".encode()
        except Exception:
            logger.exception("the metrics could not be gathered; please report it")
            return 500, _PLAIN, b"The metrics could not be gathered; the node's log says why.\n"

    def _send(
        self, status: int, content_type: str, content: bytes, is_last: bool, has_content: bool = True, encoding: str = ""
    ) -> None:
        self._answering = None
        if self._is_over:
            return
        encoded = f"Content-Encoding: {encoding}\r\n" if encoding else ""
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {content_type}\r\nContent-Length: {len(content)}\r\n"
            f"{encoded}Connection: {'close' if is_last else 'keep-alive'}\r\n\r\n"
        ).encode()
        self._timer.cancel()
        self._timer = self._loop.call_later(IDLE_S, self.close)
        if self in self._others:
            self._others[self] = self._others.pop(self)  # to the end: it is the last to be replaced
        self._stream.send([head, content] if has_content else [head])
        if is_last:
            self._stream.close_when_sent()
        elif not self._stream.unsent_bytes:
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """The response is sent: read the next request."""
        if self._answering is None and not self._is_over:
            self._stream.resume()
            self._read_head()


async def _gzip(content: bytes) -> bytes:
    """Compress in pieces, so that others run in between."""
    packer = zlib.compressobj(1, wbits=31)
    pieces = []
    for begin in range(0, len(content), GZIP_PIECE_BYTES):
        pieces.append(packer.compress(content[begin : begin + GZIP_PIECE_BYTES]))
        await asyncio.sleep(0)
    return b"".join([*pieces, packer.flush()])


_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
