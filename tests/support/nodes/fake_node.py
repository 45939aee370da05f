"""A Kafka node with scripted responses, behind a network in memory: for tests of clients.

    node = FakeNode({MetadataRequest: lambda request, version: MetadataResponse(...)})
    network = FakeNetwork({("localhost", 9092): node})

A response is a message; None for no response; bytes to send as they are; `HANG_UP` to close the connection. All requests are in
`node.asked`, as (message, version).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.env.net import DEFAULT_OPTIONS, Accept, Listener, Sendable, SocketOptions, StreamOwner
from ottla.env.tls import TlsOptions
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message
from ottla.wire.codec import join_parts
from ottla.wire.framing import FrameSplitter
from ottla.wire.headers import encode_response, parse_request
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

HANG_UP = object()
TELEMETRY = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
"""Clients use these by themselves where a node serves them, so a node serves them only if it has handlers for them."""
Handler = Callable[[Any, int], object]


def all_versions(**changes: tuple[int, int] | None) -> list[ApiVersion]:
    """The versions that Kafka 4.3 advertises, with `changes` by API name; None leaves an API out."""
    ranges = {
        api.name: (api.key, api.advertised())
        for api in APIS.values()
        if not api.is_removed and (api.key not in TELEMETRY or api.name in changes)
    }
    served = []
    for name, (key, advertised) in ranges.items():
        versions = changes.get(name, advertised)
        if versions is not None:
            served.append(ApiVersion(api_key=key, min_version=versions[0], max_version=versions[1]))
    return served


class FakeNode:
    """One node. `handlers` by request class; ApiVersions is answered with `served`, or (None) as Kafka 4.3."""

    def __init__(self, handlers: Mapping[type[Message], Handler], served: Sequence[ApiVersion] | None = None) -> None:
        self.handlers: dict[type[Message], Handler] = {ApiVersionsRequest: self._api_versions, **handlers}
        self.served = None if served is None else list(served)
        self.asked: list[tuple[Any, int]] = []
        self.client_ids: set[str | None] = set()
        self.connections = 0

    def asked_for(self, kind: type[Message]) -> list[Any]:
        """The requests of one class, in order."""
        return [message for message, _ in self.asked if isinstance(message, kind)]

    def _api_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        if self.served is not None:
            return ApiVersionsResponse(api_keys=self.served)
        telemetry = {APIS[kind.KEY].name: APIS[kind.KEY].advertised() for kind in self.handlers if kind.KEY in TELEMETRY}
        return ApiVersionsResponse(api_keys=all_versions(**telemetry))

    def answer(self, frame: bytearray) -> object:
        header, message = parse_request(frame)
        self.asked.append((message, header.request_api_version))
        self.client_ids.add(header.client_id)
        reply = self.handlers[type(message)](message, header.request_api_version)
        if not isinstance(reply, Message):
            return reply
        # A refused ApiVersions is answered in version 0, in every version of the request.
        is_refusal = isinstance(reply, ApiVersionsResponse) and reply.error_code == ErrorCode.UNSUPPORTED_VERSION
        version = 0 if is_refusal else header.request_api_version
        return join_parts(encode_response(reply, version, header.correlation_id))


class FakeStream:
    """The client's end of a connection to a `FakeNode`; bytes arrive in the next turn of the loop, `piece_bytes` at a time."""

    def __init__(self, node: FakeNode, owner: StreamOwner, peer: tuple[str, int], piece_bytes: int) -> None:
        self.peer = peer
        self.local = ("client", 1)
        self.unsent_bytes = 0
        self._node = node
        self._owner = owner
        self._piece_bytes = piece_bytes
        self._splitter = FrameSplitter(1 << 30)
        self._inbox = bytearray()
        self._is_paused = True
        self._is_over = False
        self._loop = asyncio.get_running_loop()

    def send(self, parts: Sequence[Sendable]) -> None:
        if self._is_over:
            return
        for frame in self._splitter.feed(b"".join(parts)):  # type: ignore[arg-type]
            reply = self._node.answer(frame)
            if reply is HANG_UP:
                self._loop.call_soon(self._end, None)
            elif isinstance(reply, bytes):
                self._inbox += reply
                self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        while self._inbox and not self._is_paused and not self._is_over:
            target = self._owner.buffer()
            count = min(len(target), len(self._inbox), self._piece_bytes)
            target[:count] = self._inbox[:count]
            del self._inbox[:count]
            del target
            self._owner.received(count)

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._deliver)

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.call_soon(self._owner.ended, None)

    def close_when_sent(self) -> None:
        self.close()

    def _end(self, error: OSError | None) -> None:
        if not self._is_over:
            self._deliver()
            self._is_over = True
            self._owner.ended(error)


class FakeNetwork:
    """`Network` with only the given nodes. An exception in place of a node is raised on connecting."""

    def __init__(self, nodes: Mapping[tuple[str, int], FakeNode | OSError], piece_bytes: int = 1 << 30) -> None:
        self.nodes = dict(nodes)
        self.piece_bytes = piece_bytes
        self.canonical: dict[str, list[str]] = {}
        """The canonical names of hosts that have others than their own."""

    def check_tls(self, options: TlsOptions) -> None:
        raise AssertionError("a network in memory has no TLS")

    async def connect(
        self,
        host: str,
        port: int,
        owner: StreamOwner,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> FakeStream:
        assert tls is None, "a network in memory has no TLS"
        node = self.nodes.get((host, port), ConnectionRefusedError(111, "Connection refused"))
        await asyncio.sleep(0)
        if isinstance(node, OSError):
            raise node
        node.connections += 1
        return FakeStream(node, owner, (host, port), self.piece_bytes)

    async def canonical_names(self, host: str) -> list[str]:
        return self.canonical.get(host, [host])

    async def listen(self, host: str, port: int, accept: Accept, options: SocketOptions = DEFAULT_OPTIONS) -> Listener:
        raise NotImplementedError("a client's network: it cannot listen")
