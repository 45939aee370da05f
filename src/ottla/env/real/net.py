"""`RealNetwork`: listening and connecting with TCP sockets (`env/net.py` is the contract, `stream.py` the connections).

Host names are resolved off the loop. A listener has one socket. Without a host it accepts both IPv6 and IPv4; for a name with
several addresses it takes the first, IPv4 before IPv6. When the process runs out of descriptors, a listener stops accepting
for `ACCEPT_PAUSE_S`: the kernel would otherwise report the waiting connection again at once.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from typing import TYPE_CHECKING, Any

from ottla.env.net import DEFAULT_OPTIONS, Accept, AddressRefused, SocketOptions, Stream, StreamOwner
from ottla.env.real.descriptors import LOG_AGAIN_S, connection_descriptor_max, descriptor_limit
from ottla.env.real.stream import RealStream
from ottla.env.tls import ShownCertificate, TlsOptions

if TYPE_CHECKING:
    import ssl

    from ottla.env.real.tls_stream import Handshakes, TlsStream

logger = logging.getLogger("ottla.net")

TLS_BUFFER_BYTES = 65_536
"""Shared by the streams that a listener accepts: four full TLS records per call."""
ACCEPTS_PER_TURN = 32
ACCEPT_PAUSE_S = 0.5
"""How long a listener accepts nothing after the process ran out of descriptors or memory for another connection."""

EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PORT_MAX = 65_535

SocketAddress = tuple[Any, ...]
"""(host, port) in IPv4, with flow and scope behind it in IPv6."""


class RealNetwork:
    """`Network` over the operating system's TCP sockets, on the running loop."""

    def check_tls(self, options: TlsOptions) -> None:
        from ottla.env.real.tls import tls_context  # late: few programs use TLS

        tls_context(options)

    def shown_certificate(self, options: TlsOptions, *, must_be_trusted: bool = False) -> ShownCertificate:
        from ottla.env.real.tls import shown_certificate

        return shown_certificate(options, must_be_trusted)

    async def listen(
        self,
        host: str,
        port: int,
        accept: Accept,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> RealListener:
        context = None if tls is None else await _listener_context(tls)
        if not 0 <= port <= PORT_MAX:
            raise AddressRefused(f"{port} is no port: choose one from 1 to {PORT_MAX}, or 0 for any that is free")
        try:
            family, address = await _first_address(host, port) if host else _any_address(port)
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise _refusal(host, port, error) from None
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1 if host else 0)
            _set_buffers(sock, options)  # before listening: accepted sockets inherit them, and TCP's window scale is set then
            sock.bind(address)
            sock.listen(options.backlog)
        except OSError as error:
            sock.close()
            raise _refusal(host, port, error) from None
        return RealListener(asyncio.get_running_loop(), sock, accept, context)

    async def connect(
        self,
        host: str,
        port: int,
        owner: StreamOwner,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> Stream:
        if tls is not None:
            # Imported here: most connections use no TLS, and importing a client must be quick.
            from ottla.env.real.tls_connect import connect_tls

            return await connect_tls(lambda: _connect(host, port, options), host, port, owner, tls)
        stream = await _connect(host, port, options)
        stream.owner = owner
        return stream

    async def canonical_names(self, host: str) -> list[str]:
        names = [await _canonical_name(address) for _, address in await _addresses(host, 0)]
        return list(dict.fromkeys(names))


class RealListener:
    """`Listener` over one listening socket."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, accept: Accept, context: ssl.SSLContext | None
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._accept = accept
        self._context = context
        self._handshakes: Handshakes | None = None
        self._ciphertext = memoryview(bytearray(TLS_BUFFER_BYTES)) if context is not None else None
        self._is_paused = False
        self._pause_timer: asyncio.TimerHandle | None = None
        self._descriptor_max = connection_descriptor_max()
        self._logged_s = -LOG_AGAIN_S
        self.address = plain_address(sock.getsockname())
        loop.add_reader(sock.fileno(), self._readable)

    def pause(self) -> None:
        if not self._is_paused and self._socket.fileno() >= 0:
            self._is_paused = True
            self._loop.remove_reader(self._socket.fileno())

    def resume(self) -> None:
        if self._is_paused and self._socket.fileno() >= 0:
            self._is_paused = False
            if self._pause_timer is None:
                self._loop.add_reader(self._socket.fileno(), self._readable)

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None

    async def renew_tls(self, options: TlsOptions) -> None:
        self._context = await _listener_context(options)

    def _readable(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if self._is_paused or self._socket.fileno() < 0:
                return
            try:
                sock, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._pause_accepting(error.strerror or str(error))
                    return
                continue  # the peer closed this connection while it waited in the backlog
            if sock.fileno() > self._descriptor_max:
                sock.close()
                self._pause_accepting("the descriptors that are left are kept for files")
                return
            self._hand_over(sock)

    def _hand_over(self, sock: socket.socket) -> None:
        try:
            sock.setblocking(False)
            stream: RealStream | TlsStream = _stream(self._loop, sock)
        except OSError:
            sock.close()  # the peer reset it while it waited in the backlog
            return
        if self._context is not None:
            from ottla.env.real.tls_stream import Handshakes, TlsStream  # late: few nodes use TLS

            if self._handshakes is None:
                self._handshakes = Handshakes()
            assert isinstance(stream, RealStream)
            assert self._ciphertext is not None
            stream = TlsStream.accepted(stream, self._context, self._ciphertext, self._handshakes)
        owner = self._accept(stream)
        if owner is None:
            stream.shut()
        else:
            stream.owner = owner

    def _pause_accepting(self, reason: str) -> None:
        now_s = self._loop.time()
        if now_s - self._logged_s >= LOG_AGAIN_S:
            self._logged_s = now_s
            logger.error(
                "no further connection can be accepted on %s:%d: %s. Retrying twice a second; raise the limit on open files "
                "(ulimit -n), which is %d, or lower max.connections",
                *self.address,
                reason,
                descriptor_limit(),
            )
        self._loop.remove_reader(self._socket.fileno())
        self._pause_timer = self._loop.call_later(ACCEPT_PAUSE_S, self._resume_accepting)

    def _resume_accepting(self) -> None:
        self._pause_timer = None
        if not self._is_paused:
            self._loop.add_reader(self._socket.fileno(), self._readable)


async def _listener_context(options: TlsOptions) -> ssl.SSLContext:
    from ottla.env.real.tls import tls_context

    return await asyncio.get_running_loop().run_in_executor(None, tls_context, options)


async def _connect(host: str, port: int, options: SocketOptions) -> RealStream:
    """A stream without owner to the first address of `host` that accepts a connection."""
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    found = await _addresses(host, port)
    first = options.first_address % max(1, len(found))
    for family, address in found[first:] + found[:first]:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            _set_buffers(sock, options)
            await loop.sock_connect(sock, address)
            return _stream(loop, sock)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise failure if failure is not None else OSError(errno.EADDRNOTAVAIL, f"the host {host} has no address")


def _stream(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> RealStream:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return RealStream(loop, sock, plain_address(sock.getpeername()), plain_address(sock.getsockname()))


def _set_buffers(sock: socket.socket, options: SocketOptions) -> None:
    if options.send_buffer_bytes > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
    if options.receive_buffer_bytes > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes)


def plain_address(address: SocketAddress) -> tuple[str, int]:
    """Host and port, with an IPv4 peer of a dual-stack socket as 127.0.0.1 instead of ::ffff:127.0.0.1."""
    host: str = address[0]
    return host.removeprefix("::ffff:") if "." in host else host, address[1]


def _any_address(port: int) -> tuple[int, SocketAddress]:
    return (socket.AF_INET6, ("::", port)) if socket.has_dualstack_ipv6() else (socket.AF_INET, ("0.0.0.0", port))


async def _first_address(host: str, port: int) -> tuple[int, SocketAddress]:
    found = await _addresses(host, port)
    return min(found, key=lambda one: one[0] != socket.AF_INET)


async def _addresses(host: str, port: int) -> list[tuple[int, SocketAddress]]:
    """The addresses of `host`. A numeric address is not resolved, so it needs no thread."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(info[0], info[4]) for info in infos]


async def _canonical_name(address: SocketAddress) -> str:
    """The host name that an address has, if that name has this address; else the address, as Java's resolver says it."""
    numeric: str = address[0]
    try:
        name, _ = await asyncio.get_running_loop().getnameinfo(address, socket.NI_NAMEREQD)
        is_its_own = any(each[0] == numeric for _, each in await _addresses(name, 0))
    except OSError:
        return numeric
    return name if is_its_own else numeric


def _refusal(host: str, port: int, error: OSError) -> AddressRefused:
    """The `AddressRefused` for a failed listen, with a text for the operator."""
    where = f"{host or 'any address'}, port {port}"
    if isinstance(error, socket.gaierror):
        return AddressRefused(f"cannot listen on {where}: the host name {host} is not known here; check listeners for a typo")
    if error.errno == errno.EADDRINUSE:
        return AddressRefused(
            f"cannot listen on {where}: the port is taken; stop what listens there, or choose another (0: any that is free)"
        )
    if error.errno == errno.EACCES:
        return AddressRefused(f"cannot listen on {where}: this user may not use it; choose a port from 1024 to {PORT_MAX}")
    if error.errno == errno.EADDRNOTAVAIL:
        return AddressRefused(
            f"cannot listen on {where}: this machine has no such address; listen on one of its own, and put the one that "
            "clients see into advertised.listeners"
        )
    return AddressRefused(f"cannot listen on {where}: {error.strerror or error}")
