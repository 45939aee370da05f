"""The network contract: streams of bytes between nodes, as raw non-blocking sockets give them.

Everything here runs on the event loop, as plain calls. The owner of a stream hands it the buffer that the next bytes go to,
so that a large frame is received straight into the bytearray its request will own; and it hands over lists of bytes and file
ranges to send, so that records go from the page cache to the socket. Only `env/real` knows `recv_into`, `sendmsg` and
`sendfile`; `sim/` passes the same bytes through memory, with delays, cuts and partitions.

Rules both implementations keep:

- `send` never blocks and never fails: it sends what goes at once and queues the rest. A failure is told to `ended`.
- `ended` comes exactly once, also after `close`, and nothing comes after it; never from within a call to the stream.
- Nothing else runs between `buffer` and `received`, and the stream has let go of the view by then: a buffer may be shared by
  many owners, and may be resized in `received`.
- Parts handed to `send` belong to the stream until they are sent; views among them are of single bytes.
- A range in the queue pins its file. A range that turns out shorter than promised ends the stream: the frame is cut.
- A stream begins paused: nothing is received until its owner calls `resume`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.env.disk import Buffer, FileRange
from ottla.errors import OttlaError

Sendable = Buffer | FileRange


class AddressRefused(OttlaError):
    """A port cannot be listened on: taken, privileged, or not an address of this machine. The text says which."""


class SocketOptions(NamedTuple):
    """Sizes the kernel is asked for; -1 leaves its default."""

    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    backlog: int = 50


DEFAULT_OPTIONS = SocketOptions()


class StreamOwner(Protocol):
    """Who receives from a stream."""

    def buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        ...

    def received(self, count: int) -> None:
        """`count` bytes, at least one, were written to the buffer."""
        ...

    def drained(self) -> None:
        """A queue that had built up is empty again."""
        ...

    def ended(self, error: OSError | None) -> None:
        """The stream is over: the peer closed it (None), it failed, or its owner closed it (None)."""
        ...


class Stream(Protocol):
    """One connection."""

    @property
    def peer(self) -> tuple[str, int]:
        """Host and port of the other side."""
        ...

    @property
    def local(self) -> tuple[str, int]: ...

    @property
    def unsent_bytes(self) -> int:
        """How much is queued."""
        ...

    def send(self, parts: Sequence[Sendable]) -> None: ...

    def pause(self) -> None:
        """Receive nothing until `resume`; the kernel's buffer fills, and the peer has to wait."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None:
        """End it now; what is queued is dropped."""
        ...

    def close_when_sent(self) -> None:
        """Receive nothing more, send what is queued, then end it."""
        ...


class Listener(Protocol):
    """A port that is being listened on."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and the real port, also where port 0 was asked for."""
        ...

    def pause(self) -> None:
        """Accept nothing until `resume`; peers wait in the backlog. May be called while a stream is being accepted."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None:
        """Accept nothing more; streams that were accepted go on."""
        ...


Accept = Callable[[Stream], StreamOwner | None]
"""Called with every new stream, paused; None refuses it: it is closed, and nobody is told of its end."""


class Network(Protocol):
    """Listening and connecting."""

    async def listen(self, host: str, port: int, accept: Accept, options: SocketOptions = DEFAULT_OPTIONS) -> Listener:
        """Listen on `host` (empty: all addresses) and `port` (0: any free one); `AddressRefused` if that cannot be."""
        ...

    async def connect(self, host: str, port: int, owner: StreamOwner, options: SocketOptions = DEFAULT_OPTIONS) -> Stream:
        """A stream to `host`:`port`, paused; `OSError` if it cannot be had."""
        ...
