"""A client that sends exactly what a test gives it: one connection, one request at a time, any API in any version.

    with RawClient(port) as client:
        response = client.request(ListOffsetsRequest(...), version=8)

Nothing is negotiated, retried or hidden: a test can send what no client library would, and sees every error code.
"""

import socket
import ssl
from types import TracebackType
from typing import Any

from ottla.wire.apis import APIS
from ottla.wire.base import Message
from ottla.wire.codec import decode_all, join_parts
from ottla.wire.headers import encode_request, read_response_header


class ConnectionClosed(ConnectionError):
    """The broker closed the connection before the response was complete."""


class RawClient:
    """One connection to a broker. Use as a context manager, or call `close`."""

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        client_id: str | None = "raw",
        timeout_s: float = 60,
        tls: ssl.SSLContext | None = None,
        source: str = "",
    ) -> None:
        """`source` is the address to connect from."""
        self._socket = socket.create_connection((host, port), timeout_s, (source, 0) if source else None)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._client_id = client_id
        self._correlation_id = 0

    @classmethod
    def to(cls, bootstrap: str, **options: Any) -> "RawClient":
        """A client of the broker at `host:port`."""
        host, _, port = bootstrap.rpartition(":")
        return cls(int(port), host, **options)

    def request(self, message: Message, version: int) -> Any:
        """Send a request, wait, and return the response in the same version."""
        correlation_id = self.send(message, version)
        return self.receive(message.KEY, version, correlation_id)

    def send(self, message: Message, version: int) -> int:
        """Send a request and do not wait; returns its correlation id."""
        self._correlation_id += 1
        self.send_bytes(join_parts(encode_request(message, version, self._correlation_id, self._client_id)))
        return self._correlation_id

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes."""
        self._socket.sendall(data)

    def receive(self, api_key: int, version: int, correlation_id: int | None = None) -> Any:
        """The next response, which must be one to `api_key` in `version`; and to `correlation_id`, if that is given."""
        frame = self.receive_frame()
        found, position = read_response_header(frame, api_key, version)
        assert correlation_id is None or found == correlation_id, f"a response to request {found}, not to {correlation_id}"
        return decode_all(APIS[api_key].response_class, version, frame, position)

    def receive_frame(self) -> bytes:
        """The next frame, without its size; `ConnectionClosed` if the broker ends the connection instead."""
        size = int.from_bytes(self._receive_exactly(4), "big", signed=True)
        return self._receive_exactly(size)

    def _receive_exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self._socket.recv(count - len(data))
            except ConnectionResetError as reset:
                raise ConnectionClosed("the broker reset the connection") from reset
            if not piece:
                raise ConnectionClosed(f"the broker closed the connection, {count - len(data)} bytes short of a response")
            data += piece
        return bytes(data)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
