"""A TLS server on a loopback port, on the running loop, for tests of clients; and the certificates that such tests need.

    async with serve(handler, server_context(issued)) as port: ...

`handler(reader, writer)` runs for every connection. What it raises because the client went away is ignored.
"""

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.servers.certificates import Authority, Issued

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class TestCertificates(NamedTuple):
    """One authority with a server and a client, and a second authority that nobody trusts."""

    __test__ = False  # no class of tests

    authority: Authority
    server: Issued
    elsewhere: Issued
    """For other.example and 192.0.2.7."""
    expired: Issued
    client: Issued
    stranger: Issued
    """A client of the second authority."""
    stranger_authority: Authority


def make_certificates(folder: Path) -> TestCertificates:
    authority, strangers = Authority(folder / "trusted"), Authority(folder / "strangers", "strangers")
    here = ["DNS:localhost", "IP:127.0.0.1"]
    return TestCertificates(
        authority,
        authority.issue("localhost", here),
        authority.issue("other.example", ["DNS:other.example", "IP:192.0.2.7"]),
        authority.issue("localhost", here, is_expired=True),
        authority.issue("client"),
        strangers.issue("stranger"),
        strangers,
    )


def server_context(issued: Issued, client_authority: Authority | None = None) -> ssl.SSLContext:
    """A server's context. With `client_authority` it demands a client certificate of that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    if client_authority is not None:
        context.load_verify_locations(client_authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes."""
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read all, say nothing."""
    while await reader.read(1 << 16):
        pass


@asynccontextmanager
async def serve(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve on a free port, which is the value; without a context, without TLS."""
    running: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await handler(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in running:
            task.cancel()


@contextmanager
def refuse_in_a_thread(context: ssl.SSLContext) -> Iterator[int]:
    """A server whose handshakes fail: for alerts, which asyncio's servers do not send. Serves until the block is left."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) as encrypted:
                    encrypted.settimeout(30)
                    try:
                        encrypted.do_handshake()
                    except OSError:
                        pass
                    # Read what the client had on the way: unread bytes would turn the close into a reset.
                    with socket.socket(fileno=os.dup(encrypted.fileno())) as raw:
                        raw.settimeout(30)
                        try:
                            raw.shutdown(socket.SHUT_WR)
                            while raw.recv(1 << 16):
                                pass
                        except OSError:
                            pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(30)


@contextmanager
def port_of_tls(folder: Path) -> Iterator[int]:
    """A port that speaks TLS and nothing else: it closes every connection after the handshake."""
    context = server_context(Authority(folder / "trusted").issue("localhost", ["IP:127.0.0.1"]))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with suppress(ssl.SSLError, OSError), connection:
                context.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
