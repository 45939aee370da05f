"""The network contract: byte streams between nodes, modelled on raw non-blocking sockets.

Everything here runs on the event loop, as plain calls. A stream's owner provides the buffer for the next bytes, so a large
frame is received straight into the bytearray that its request will own. It sends lists of bytes and file ranges, so records
go from the page cache to the socket. Only `env/real` calls `recv_into`, `sendmsg` and `sendfile`; `sim/` passes the same
bytes through memory, with delays, cuts and partitions.

Both implementations keep these rules:

- `send` never blocks and never raises: it sends what the kernel takes and queues the rest. A failure is reported to `ended`.
- `ended` is called exactly once, also after `close`, and never from within a call to the stream. It is the last call.
- Nothing else runs between `buffer` and `received`, and the stream has released the view before `received`. So many owners
  may share one buffer, and `received` may resize it.
- Parts handed to `send` belong to the stream until they are sent. Memoryviews among them have item size 1.
- A range in the queue pins its file. A range that turns out shorter than promised ends the stream: the frame is cut.
- A stream begins paused: nothing is received until its owner calls `resume`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.env.disk import Buffer, FileRange
from ottla.env.tls import ShownCertificate, TlsOptions
from ottla.errors import OttlaError

Sendable = Buffer | FileRange


class AddressRefused(OttlaError):
    """A port cannot be listened on: taken, privileged, or not an address of this machine. The text says which."""


class SocketOptions(NamedTuple):
    """Socket buffer sizes, where -1 keeps the kernel's default, and what only listeners or only connections need."""

    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    backlog: int = 50
    first_address: int = 0
    """Which address of a host name is tried first, counted around. A caller that failed counts on: an address that does not
    answer takes all the time that there is, and the others must have their turn."""


DEFAULT_OPTIONS = SocketOptions()


class StreamOwner(Protocol):
    """Receives the bytes and events of one stream."""

    def buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        ...

    def received(self, count: int) -> None:
        """`count` bytes, at least one, were written to the buffer."""
        ...

    def drained(self) -> None:
        """Everything that `send` had queued has now been sent."""
        ...

    def ended(self, error: OSError | None) -> None:
        """The stream is over. `error` is None if the peer or the owner closed it, else the failure."""
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

    def peer_certificate(self) -> bytes | None:
        """The certificate that the peer has shown and that was found valid, DER. None: it has shown none, or no TLS."""
        ...

    def has_lost_peer(self, *, or_half: bool) -> bool:
        """Whether the peer has broken the connection, or with `or_half` has only closed its side of it.

        For an owner that has paused: it is not told before it resumes.
        """
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

    async def renew_tls(self, options: TlsOptions) -> None:
        """Read the files of `options` again, and use them for streams accepted from now on. `TlsFailed` changes nothing."""
        ...


Accept = Callable[[Stream], StreamOwner | None]
"""Called with every new stream, which is paused. Returning None refuses it: it is closed without a call to `ended`.

With TLS the handshake is still to come. Its end is the first call to `received`, or `ended` with a `TlsFailed`."""


class Network(Protocol):
    """Listening and connecting."""

    def check_tls(self, options: TlsOptions) -> None:
        """Raise `TlsFailed` if no connection can work with `options`: a missing file, a wrong password. It may read files."""
        ...

    def shown_certificate(self, options: TlsOptions, *, must_be_trusted: bool = False) -> ShownCertificate:
        """Whom the certificate of `options` is for; with `must_be_trusted` their own trusted ones must accept it.

        Raises `TlsFailed`. It may read files.
        """
        ...

    async def listen(
        self,
        host: str,
        port: int,
        accept: Accept,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> Listener:
        """Listen on `host` (empty: all addresses) and `port` (0: any free one), with TLS if `tls` is given.

        Raises `AddressRefused` if it cannot, `TlsFailed` if `tls` has an option that is wrong.
        """
        ...

    async def connect(
        self,
        host: str,
        port: int,
        owner: StreamOwner,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> Stream:
        """A paused stream to `host`:`port`, encrypted if `tls` is given: then the TLS handshake is over.

        Every address of `host` is tried, until one accepts. The name is looked up at every call.
        Raises `OSError` if the connection fails, `TlsFailed` if TLS is what fails. A peer that refuses our certificate may say
        so only after the handshake: then `TlsFailed` is reported to `ended`. There is no time limit: a caller that has one
        cancels.
        """
        ...

    async def canonical_names(self, host: str) -> list[str]:
        """The canonical host name of each address of `host`; of an address without one, the address. Raises `OSError`."""
        ...
