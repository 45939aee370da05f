"""A proxy between clients and a broker: passes every byte on unchanged, and keeps the decoded frames.

    tap = WireTap()
    with start_server({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{tap.port}"}) as server, tap.watching(server.port):
        ... clients connect to tap.bootstrap; tap.exchanges(ApiKey.FETCH) are requests with their responses ...

The broker must advertise the tap's address, or clients would leave it after their first Metadata request. One thread runs all
connections on an event loop of its own; `exchanges` may be called from any thread.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ottla.wire.apis import APIS
from ottla.wire.codec import decode_all
from ottla.wire.headers import parse_request, read_response_header


@dataclass(slots=True)
class Exchange:
    """One request and its response, which is None until it comes (with acks=0: for ever)."""

    connection: int
    client_id: str | None
    api_key: int
    version: int
    request: Any
    response: Any = None
    response_bytes: int = 0


@dataclass(slots=True)
class _Connection:
    number: int
    waiting: dict[int, Exchange] = field(default_factory=dict)


class WireTap:
    """Listens as soon as it is created; passes bytes on within `watching`."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._exchanges: list[Exchange] = []
        self._failures: list[BaseException] = []
        self._connections = 0
        self._broker_port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def exchanges(self, api_key: int, client_id: str | None = None) -> list[Exchange]:
        """The requests so far with their responses, in the order of the requests; of one client, if its id is given."""
        if self._failures:
            raise self._failures[0]
        return [
            each
            for each in list(self._exchanges)
            if each.api_key == api_key and (client_id is None or each.client_id == client_id)
        ]

    @contextmanager
    def watching(self, broker_port: int) -> Iterator["WireTap"]:
        """Pass on to the broker on this port until the block ends; all connections are closed then."""
        self._broker_port = broker_port
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name="wire-tap", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(60)
            self._socket.close()
        if self._failures:
            raise self._failures[0]

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._accepted, sock=self._socket, limit=1 << 26))
        loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        connection = _Connection(self._connections)
        from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._broker_port, limit=1 << 26)
        there = asyncio.ensure_future(self._pass_on(reader, to_broker, connection, is_request=True))
        back = asyncio.ensure_future(self._pass_on(from_broker, writer, connection, is_request=False))
        await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        writer.close()
        to_broker.close()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, connection: _Connection, is_request: bool
    ) -> None:
        try:
            while True:
                size = await source.readexactly(4)
                frame = await source.readexactly(struct.unpack(">i", size)[0])
                (self._saw_request if is_request else self._saw_response)(connection, frame)
                target.write(size + frame)
                await target.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except Exception as failure:
            self._failures.append(failure)

    def _saw_request(self, connection: _Connection, frame: bytes) -> None:
        header, request = parse_request(bytearray(frame))
        exchange = Exchange(connection.number, header.client_id, header.request_api_key, header.request_api_version, request)
        connection.waiting[header.correlation_id] = exchange
        self._exchanges.append(exchange)

    def _saw_response(self, connection: _Connection, frame: bytes) -> None:
        (correlation_id,) = struct.unpack_from(">i", frame)
        exchange = connection.waiting.pop(correlation_id)
        _, position = read_response_header(frame, exchange.api_key, exchange.version)
        exchange.response_bytes = len(frame)
        exchange.response = decode_all(APIS[exchange.api_key].response_class, exchange.version, frame, position)
