"""`TlsStream`: a `Stream` that encrypts over a `RealStream`, which stays as it is.

It owns the plain stream, receives ciphertext from it and hands plaintext to its own owner. OpenSSL works on memory only:
received bytes go into one BIO, and what it wants sent comes out of another. So all waiting, queueing and closing is
`RealStream`'s. The first BIO may hold bytes that the owner did not take because it paused; `resume` goes on with them.

A close_notify is sent on closing. A peer that closes without one is taken as closed: frames have lengths, so a cut is noticed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence

from ottla.env.disk import Buffer
from ottla.env.net import Sendable, StreamOwner
from ottla.env.real.stream import BYTE_TYPES, RealStream
from ottla.env.real.tls_errors import explain

RECEIVE_BYTES = 65_536
"""How much ciphertext is received per call: four full TLS records."""

JOIN_BYTES_MAX = 16_384
"""Parts up to this size together are encrypted as one TLS record."""


class TlsStream:
    """One encrypted connection. `handshake` comes first; then it is a paused `Stream`."""

    __slots__ = (
        "_address",
        "_failure",
        "_handshake",
        "_held",
        "_incoming",
        "_inner",
        "_is_over",
        "_is_reading",
        "_is_scheduled",
        "_loop",
        "_outgoing",
        "_owner",
        "_received",
        "tls",
    )

    def __init__(self, inner: RealStream, owner: StreamOwner, context: ssl.SSLContext, server_name: str, address: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._inner = inner
        self._owner = owner
        self._address = address
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._received = memoryview(bytearray(RECEIVE_BYTES))
        self._handshake: asyncio.Future[None] | None = None
        self._held: deque[Buffer] = deque()  # plaintext that OpenSSL does not take during a renegotiation
        self._is_reading = False
        self._is_scheduled = False
        self._is_over = False
        self._failure: OSError | None = None
        inner.owner = self

    async def handshake(self) -> None:
        """Shake hands. Raises `ssl.SSLError`, or another `OSError` if the connection breaks; the stream is then shut."""
        self._handshake = self._loop.create_future()
        try:
            self._inner.resume()
            self._shake()
            await self._handshake
        except BaseException:
            self.shut()
            raise
        finally:
            self._handshake = None
        self._inner.pause()

    def _shake(self) -> None:
        future = self._handshake
        assert future is not None
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert that tells the peer why
            if not future.done():
                future.set_exception(error)
        else:
            self._flush()
            if not future.done():
                future.set_result(None)

    # Events of the plain stream (env.StreamOwner)

    def buffer(self) -> memoryview:
        return self._received

    def received(self, count: int) -> None:
        self._incoming.write(self._received[:count])
        if self._handshake is None:
            self._pump()
        elif not self._handshake.done():
            self._shake()

    def drained(self) -> None:
        if self._handshake is None and not self._is_over and not self._held:
            self._owner.drained()

    def ended(self, error: OSError | None) -> None:
        self._is_over = True
        if self._handshake is None:
            self._owner.ended(self._failure or error)
        elif not self._handshake.done():
            self._handshake.set_exception(error or ConnectionResetError("it closed the connection during the TLS handshake"))

    # Stream

    @property
    def peer(self) -> tuple[str, int]:
        return self._inner.peer

    @property
    def local(self) -> tuple[str, int]:
        return self._inner.local

    @property
    def unsent_bytes(self) -> int:
        return self._inner.unsent_bytes + sum(map(len, self._held))

    def pause(self) -> None:
        self._is_reading = False
        self._inner.pause()

    def resume(self) -> None:
        if self._is_over:
            return
        self._is_reading = True
        self._inner.resume()
        # OpenSSL may hold bytes that came before the pause. The owner may be calling: they wait for the loop's next turn.
        if not self._is_scheduled and (self._incoming.pending or self.tls.pending()):
            self._is_scheduled = True
            self._loop.call_soon(self._go_on)

    def send(self, parts: Sequence[Sendable]) -> None:
        if self._is_over:
            return
        plain = [part if isinstance(part, BYTE_TYPES) else part.read() for part in parts]
        if len(plain) > 1 and sum(map(len, plain)) <= JOIN_BYTES_MAX:
            plain = [b"".join(plain)]
        self._held.extend(plain)
        self._encrypt()

    def close(self) -> None:
        if not self._is_over:
            self._say_goodbye()
            self._inner.close()

    def close_when_sent(self) -> None:
        if not self._is_over:
            self._say_goodbye()
            self._inner.close_when_sent()

    def shut(self) -> None:
        """Close the socket without calling `ended`."""
        self._is_over = True
        self._inner.owner = None  # a failed send may have left a report of it on the loop
        self._inner.shut()

    # Internals

    def _encrypt(self) -> None:
        """Encrypt what is held, and send it."""
        held = self._held
        try:
            while held:
                part = memoryview(held[0])
                while part:
                    # One call makes one record at most. After a want-read the same bytes must be written again.
                    part = part[self.tls.write(part) :]
                    held[0] = part
                held.popleft()
        except ssl.SSLWantReadError:
            pass  # a renegotiation (TLS 1.2): `_pump` tries again
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._flush()

    def _go_on(self) -> None:
        self._is_scheduled = False
        if self._is_reading and not self._is_over:
            self._pump()

    def _pump(self) -> None:
        """Hand what has been received to the owner, as long as it wants more."""
        try:
            while self._is_reading and not self._is_over:
                target = self._owner.buffer()
                count, is_more = self._decrypt(target)
                del target  # release the view: the owner may resize the buffer
                if count:
                    self._owner.received(count)
                if not is_more:
                    break
        except ssl.SSLZeroReturnError:  # close_notify
            self._is_over = True
            self._inner.close()
            return
        except ssl.SSLError as error:
            self._fail(error)
            return
        if not self._is_over:
            if self._held:
                self._encrypt()
            elif self._outgoing.pending:
                self._flush()  # an answer of OpenSSL's own: a key update

    def _decrypt(self, target: memoryview) -> tuple[int, bool]:
        """Fill `target` with plaintext: the bytes written, and whether more may be there."""
        count, size = 0, len(target)
        try:
            while count < size:
                # One call reads one record at most.
                read: int = self.tls.read(size - count, target[count:])  # type: ignore[assignment]  # with a buffer: a count
                if not read:
                    raise ssl.SSLZeroReturnError
                count += read
        except ssl.SSLWantReadError:
            return count, False
        except ssl.SSLError:
            if not count:
                raise
            # The plaintext before the error is handed out first. The next call raises the error again.
        return count, True

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._inner.send([self._outgoing.read()])

    def _say_goodbye(self) -> None:
        self._is_over = True
        self._is_reading = False
        try:
            self.tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # it wants the peer's close_notify, for which nothing here waits
        self._flush()

    def _fail(self, error: ssl.SSLError) -> None:
        self._failure = explain(self._address, error)
        self._is_over = True
        self._flush()
        self._inner.close()  # `ended` reports the failure later
