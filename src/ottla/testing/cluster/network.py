"""A network whose connections can be cut, in a node's process: nothing is lost or closed, it is held back until it is healed.

That is what TCP does in a network that is cut: bytes are sent again until they arrive or a side gives up. A cut connection is
not read, what is to be sent is queued, and connecting to a peer that is cut off does not end. The peers cannot tell.
Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.env.net import DEFAULT_OPTIONS, Accept, Listener, Sendable, SocketOptions, Stream, StreamOwner
from ottla.testing.cluster.cuts import CLIENTS, Blocked

if TYPE_CHECKING:
    from ottla.env import Network
    from ottla.env.tls import ShownCertificate, TlsOptions

_OPEN: Final = (False, False)


class CuttableNetwork:
    """`Network` of one node. `nodes` are the other nodes' ids by their ports, `client_port` is the node's port for clients."""

    def __init__(self, inner: Network, nodes: Mapping[int, str], client_port: int) -> None:
        self._inner = inner
        self._nodes = nodes
        self._client_port = client_port
        self._blocked: Blocked = {}
        self._is_changed = asyncio.Event()
        self.streams: set[HeldStream] = set()

    def block(self, blocked: Mapping[str, Sequence[bool]]) -> None:
        """Hold this back from now on, and let everything else through."""
        self._blocked = {peer: (bool(both[0]), bool(both[1])) for peer, both in blocked.items()}
        for stream in list(self.streams):
            stream.block(*self.blocked(stream.remote))
        self._is_changed.set()
        self._is_changed = asyncio.Event()

    def blocked(self, remote: str) -> tuple[bool, bool]:
        return self._blocked.get(remote, _OPEN)

    # The contract

    def check_tls(self, options: TlsOptions) -> None:
        self._inner.check_tls(options)

    def shown_certificate(self, options: TlsOptions, *, must_be_trusted: bool = False) -> ShownCertificate:
        return self._inner.shown_certificate(options, must_be_trusted=must_be_trusted)

    async def canonical_names(self, host: str) -> list[str]:
        return await self._inner.canonical_names(host)

    async def listen(
        self,
        host: str,
        port: int,
        accept: Accept,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> Listener:
        if port != self._client_port:
            return await self._inner.listen(host, port, accept, options, tls)

        def accept_held(stream: Stream) -> StreamOwner | None:
            held = HeldStream(self, CLIENTS, stream)
            held.owner = accept(held)
            if held.owner is None:
                self.streams.discard(held)
                return None
            return held

        return await self._inner.listen(host, port, accept_held, options, tls)

    async def connect(
        self,
        host: str,
        port: int,
        owner: StreamOwner,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> Stream:
        remote = self._nodes.get(port)
        if remote is None:
            return await self._inner.connect(host, port, owner, options, tls)
        while any(self.blocked(remote)):  # a handshake needs both directions
            await self._is_changed.wait()
        held = HeldStream(self, remote, None)
        held.owner = owner
        held.stream = await self._inner.connect(host, port, held, options, tls)
        held.block(*self.blocked(remote))
        return held


class HeldStream:
    """A stream between its owner and the network's own stream, either of which sees it as the other."""

    def __init__(self, network: CuttableNetwork, remote: str, stream: Stream | None) -> None:
        self._network = network
        self._is_wanted = False
        self._queue: list[Sendable] = []
        self._queued_bytes = 0
        self.remote = remote
        self.owner: StreamOwner | None = None
        self._holds_in, self._holds_out = network.blocked(remote)
        self._stream = stream
        network.streams.add(self)

    @property
    def stream(self) -> Stream:
        assert self._stream is not None, "connected"
        return self._stream

    @stream.setter
    def stream(self, stream: Stream) -> None:
        self._stream = stream

    def block(self, holds_in: bool, holds_out: bool) -> None:
        """Hold back what arrives, what leaves, or both; let the rest through."""
        self._holds_in, self._holds_out = holds_in, holds_out
        if self._stream is None:
            return  # `connect` calls again
        if holds_in:
            self._stream.pause()
        elif self._is_wanted:
            self._stream.resume()
        if self._queue and not holds_out:
            parts, self._queue, self._queued_bytes = self._queue, [], 0
            self._stream.send(parts)
            if not self._stream.unsent_bytes:
                asyncio.get_running_loop().call_soon(self.drained)

    # As the owner's stream

    @property
    def peer(self) -> tuple[str, int]:
        return self.stream.peer

    @property
    def local(self) -> tuple[str, int]:
        return self.stream.local

    @property
    def unsent_bytes(self) -> int:
        return self.stream.unsent_bytes + self._queued_bytes

    def peer_certificate(self) -> bytes | None:
        return self.stream.peer_certificate()

    def has_lost_peer(self, *, or_half: bool) -> bool:
        return self.stream.has_lost_peer(or_half=or_half)

    def send(self, parts: Sequence[Sendable]) -> None:
        if self._holds_out:
            self._queue.extend(parts)
            self._queued_bytes += sum(map(len, parts))
        else:
            self.stream.send(parts)

    def pause(self) -> None:
        self._is_wanted = False
        self.stream.pause()

    def resume(self) -> None:
        self._is_wanted = True
        if not self._holds_in:
            self.stream.resume()

    def close(self) -> None:
        self.stream.close()

    def close_when_sent(self) -> None:
        if self._queue:
            self.stream.close()  # what is held back would never be sent
        else:
            self.stream.close_when_sent()

    # As the owner of the network's stream

    def buffer(self) -> memoryview:
        assert self.owner is not None, "accepted"
        return self.owner.buffer()

    def received(self, count: int) -> None:
        assert self.owner is not None, "accepted"
        self.owner.received(count)

    def drained(self) -> None:
        if self.owner is not None and not self._queue:
            self.owner.drained()

    def ended(self, error: OSError | None) -> None:
        self._network.streams.discard(self)
        self._queue.clear()
        if self.owner is not None:
            self.owner.ended(error)
