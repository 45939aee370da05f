"""`TlsStream`: a `Stream` that encrypts over a `RealStream`, which stays as it is. Both sides of a connection use it.

It owns the plain stream, receives ciphertext from it and hands plaintext to its own owner. OpenSSL works on memory only:
received bytes go into one BIO, and what it wants sent comes out of another. So all waiting, queueing and closing is
`RealStream`'s. The first BIO may hold bytes that the owner did not take because it paused; `resume` goes on with them.

Large replies are encrypted in pieces, as fast as the kernel takes them: file ranges are read piece by piece, at most
`AHEAD_BYTES` of ciphertext wait, and after `TURN_BYTES` others have their turn on the loop.

A close_notify is sent on closing. A peer that closes without one is taken as closed: frames have lengths, so a cut is noticed.
An accepted stream shakes hands by itself, from its first bytes on; a client that sends none costs no TLS state.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from ottla.env.net import Sendable, StreamOwner
from ottla.env.real.stream import BYTE_TYPES, RealStream
from ottla.env.real.tls_errors import explain, explain_client, is_no_tls
from ottla.env.tls import TlsFailed

RECEIVE_BYTES = 65_536
"""How much ciphertext is received per call: four full TLS records."""

JOIN_BYTES_MAX = 16_384
"""Parts up to this size together are encrypted as one TLS record."""

PIECE_BYTES = 131_072
"""How much of a file range is read and encrypted at a time."""

AHEAD_BYTES = 262_144
"""With more ciphertext than this unsent, nothing further is encrypted."""

INTERNAL_ERROR = bytes.fromhex("15 0303 0002 0250")
"""The alert that Kafka answers bytes with that are not TLS."""

TURN_BYTES = 524_288
"""How much is encrypted in one turn of the loop, about half a millisecond."""

HANDSHAKES_MAX = 1024
"""So many handshakes of clients may be under way: each holds 46 KB. Another one ends the oldest."""

HANDSHAKE_S_MAX = 30.0
"""How long a handshake may take from its first byte on. A client that says nothing at all has the time of an idle one."""

HANDSHAKES_TURN_S = 0.005
"""How much of one turn of the loop handshakes take; those of others wait."""


class TlsStream:
    """One encrypted connection: a paused `Stream` after `handshake` (outbound), or at once (accepted)."""

    __slots__ = (
        "_address",
        "_failure",
        "_handshake",
        "_handshakes",
        "_held",
        "_held_bytes",
        "_incoming",
        "_inner",
        "_is_accepted",
        "_is_encrypting",
        "_is_leaving",
        "_is_over",
        "_is_reading",
        "_is_scheduled",
        "_is_shaking",
        "_loop",
        "_outgoing",
        "_received",
        "_tls",
        "_wrap",
        "owner",
    )

    def __init__(
        self, inner: RealStream, owner: StreamOwner | None, wrap: Callable[..., ssl.SSLObject], address: str, buffer: memoryview
    ) -> None:
        """`wrap` is a context's `wrap_bio`. Streams of one loop may share `buffer`: nothing stays in it between calls."""
        self._loop = asyncio.get_running_loop()
        self._inner = inner
        self.owner = owner
        self._address = address
        self._wrap = wrap
        self._tls: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        self._received = buffer
        self._handshake: asyncio.Future[None] | None = None
        self._held: deque[Sendable] = deque()  # plaintext that is not encrypted yet
        self._held_bytes = 0
        self._is_accepted = False
        self._handshakes: Handshakes | None = None
        self._is_shaking = True
        self._is_reading = False
        self._is_scheduled = False
        self._is_encrypting = False
        self._is_leaving = False
        self._is_over = False
        self._failure: OSError | None = None
        inner.owner = self

    @classmethod
    def outbound(
        cls, inner: RealStream, owner: StreamOwner, context: ssl.SSLContext, server_name: str, address: str
    ) -> TlsStream:
        wrap = partial(context.wrap_bio, server_hostname=server_name)
        return cls(inner, owner, wrap, address, memoryview(bytearray(RECEIVE_BYTES)))

    @classmethod
    def accepted(cls, inner: RealStream, context: ssl.SSLContext, buffer: memoryview, handshakes: Handshakes) -> TlsStream:
        """The listening side. Its owner is set after the call; a failed handshake is reported to `ended`."""
        stream = cls(inner, None, partial(context.wrap_bio, server_side=True), "", buffer)
        stream._is_accepted = True
        stream._handshakes = handshakes
        return stream

    # Handshake

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
        if self._tls is None:
            self._incoming, self._outgoing = self._incoming or ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = self._wrap(self._incoming, self._outgoing)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert that tells the peer why
            self._shaken(error)
        else:
            self._flush()
            self._is_shaking = False
            self._shaken(None)

    def shake_in_turn(self) -> None:
        """Go on with a handshake that had to wait."""
        if self._is_shaking and not self._is_over:
            self._inner.resume()
            self._shake()

    def wait_for_turn(self) -> None:
        self._inner.pause()

    def give_up(self, reason: str) -> None:
        """End a handshake that is under way."""
        self._fail(TlsFailed(reason))

    def _shaken(self, error: ssl.SSLError | None) -> None:
        self._leave_handshakes()
        future = self._handshake
        if future is not None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        elif error is not None:
            self._fail(error)
        elif self._is_reading:
            self._pump()

    def _leave_handshakes(self) -> None:
        handshakes, self._handshakes = self._handshakes, None
        if handshakes is not None:
            handshakes.end(self)

    @property
    def tls(self) -> ssl.SSLObject:
        assert self._tls is not None, "it has begun to shake hands"
        return self._tls

    # Events of the plain stream (env.StreamOwner)

    def buffer(self) -> memoryview:
        return self._received

    def received(self, count: int) -> None:
        if self._is_over:
            return
        if self._incoming is None:
            self._incoming = ssl.MemoryBIO()
        self._incoming.write(self._received[:count])
        if not self._is_shaking:
            self._pump()
        elif self._handshakes is not None:
            self._handshakes.shake(self)
        elif self._handshake is not None and not self._handshake.done():
            self._shake()

    def drained(self) -> None:
        if not self._is_shaking and not self._is_over:
            self._encrypt_more()

    def ended(self, error: OSError | None) -> None:
        self._is_over = True
        self._leave_handshakes()
        self._drop_held()
        if self._handshake is None:
            if self.owner is not None:
                self.owner.ended(self._failure or error)
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
        return self._inner.unsent_bytes + self._held_bytes

    def peer_certificate(self) -> bytes | None:
        return None if self._tls is None or self._is_shaking else self._tls.getpeercert(binary_form=True)

    def has_lost_peer(self, *, or_half: bool) -> bool:
        return self._is_over or self._inner.has_lost_peer(or_half=or_half)

    def pause(self) -> None:
        self._is_reading = False
        self._inner.pause()

    def resume(self) -> None:
        if self._is_over or self._is_leaving:
            return
        self._is_reading = True
        self._inner.resume()
        # OpenSSL may hold bytes that came before the pause. The owner may be calling: they wait for the loop's next turn.
        if self._is_shaking or self._is_scheduled or self._incoming is None:
            return
        if self._incoming.pending or self.tls.pending():
            self._is_scheduled = True
            self._loop.call_soon(self._go_on)

    def send(self, parts: Sequence[Sendable]) -> None:
        if self._is_over or self._is_leaving:
            return
        size = sum(map(len, parts))
        if len(parts) > 1 and size <= JOIN_BYTES_MAX:
            try:
                parts = [b"".join(part if isinstance(part, BYTE_TYPES) else part.read() for part in parts)]
            except OSError as error:
                self._fail(error)
                return
        self._held.extend(parts)
        self._held_bytes += size
        if not self._is_encrypting:
            self._encrypt()

    def close(self) -> None:
        if not self._is_over:
            self._say_goodbye()
            self._inner.close()

    def close_when_sent(self) -> None:
        if self._is_over or self._is_leaving:
            return
        self._is_leaving = True
        self._is_reading = False
        self._inner.pause()
        if not self._held:
            self._leave()

    def _leave(self) -> None:
        self._say_goodbye()
        self._inner.close_when_sent()

    def shut(self) -> None:
        """Close the socket without calling `ended`."""
        self._is_over = True
        self._leave_handshakes()
        self._drop_held()
        self._inner.owner = None  # a failed send may have left a report of it on the loop
        self._inner.shut()

    # Sending

    def _encrypt(self) -> None:
        """Encrypt what is held, as far as the kernel takes it, and send it."""
        held, turn_bytes = self._held, TURN_BYTES
        try:
            while held and self._inner.unsent_bytes < AHEAD_BYTES and turn_bytes > 0:
                turn_bytes -= self._encrypt_piece()
                self._flush()
        except ssl.SSLWantReadError:
            self._flush()  # a renegotiation (TLS 1.2): `_pump` tries again
            return
        except OSError as error:  # of OpenSSL, or a file that is shorter than its range
            self._fail(error)
            return
        if self._is_leaving and not held:
            self._leave()
        elif held and turn_bytes <= 0 and not self._is_encrypting and not self._inner.unsent_bytes:
            self._is_encrypting = True  # the kernel takes all, so `drained` would not come
            self._loop.call_soon(self._continue)

    def _encrypt_piece(self) -> int:
        """Encrypt the next `PIECE_BYTES` at most, of one part; returns how many."""
        part = self._held[0]
        if isinstance(part, BYTE_TYPES):
            rest = memoryview(part)
            piece, rest = rest[:PIECE_BYTES], rest[PIECE_BYTES:]
            after: Sendable | None = rest if rest else None
        else:
            rest_of = part if isinstance(part, _RestOfRange) else _RestOfRange(part, 0)
            piece, after = rest_of.next_piece()
        size = len(piece)
        while piece:
            # One call makes one record at most. After a want-read the same bytes must be written again.
            try:
                count = self.tls.write(piece)
            except ssl.SSLWantReadError:
                self._held[0] = piece
                if after is not None:
                    self._held.insert(1, after)
                raise
            piece = piece[count:]
            self._held_bytes -= count
        if after is None:
            self._held.popleft()
        else:
            self._held[0] = after
        return size

    def _continue(self) -> None:
        self._is_encrypting = False
        if not self._is_over:
            self._encrypt_more()

    def _encrypt_more(self) -> None:
        """Go on with what is held. The owner was told of unsent bytes: it hears when there are none any more."""
        self._encrypt()
        if not self._held_bytes and not self._inner.unsent_bytes and not self._is_over and self.owner is not None:
            self.owner.drained()

    def _flush(self) -> None:
        if self._outgoing is not None and self._outgoing.pending:
            self._inner.send([self._outgoing.read()])

    def _drop_held(self) -> None:
        self._held.clear()
        self._held_bytes = 0

    # Receiving

    def _go_on(self) -> None:
        self._is_scheduled = False
        if self._is_reading and not self._is_over:
            self._pump()

    def _pump(self) -> None:
        """Hand what has been received to the owner, as long as it wants more."""
        owner = self.owner
        assert owner is not None
        try:
            while self._is_reading and not self._is_over:
                target = owner.buffer()
                count, is_more = self._decrypt(target)
                del target  # release the view: the owner may resize the buffer
                if count:
                    owner.received(count)
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
            if self._held and not self._is_encrypting:
                self._encrypt()
            else:
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

    # Closing

    def _say_goodbye(self) -> None:
        self._is_over = True
        self._leave_handshakes()
        self._is_reading = False
        self._drop_held()
        if self._tls is None or self._is_shaking:
            return
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # it wants the peer's close_notify, for which nothing here waits
        self._flush()

    def _fail(self, error: OSError) -> None:
        if isinstance(error, ssl.SSLError):
            self._failure = explain_client(error) if self._is_accepted else explain(self._address, error)
        else:
            self._failure = error
        self._is_over = True
        self._leave_handshakes()
        self._drop_held()
        if self._is_accepted and is_no_tls(error):
            self._inner.send([INTERNAL_ERROR])  # OpenSSL sends none, and the peer would see no more than a closed connection
        self._flush()
        # `ended` reports the failure later. A client that we refuse must be able to read the alert: no reset.
        if self._is_accepted and self._is_shaking:
            self._tls = self._incoming = self._outgoing = None  # it takes a while
            self._inner.close_when_sent()
        else:
            self._inner.close()


class Handshakes:
    """The handshakes of a listener's clients that are under way: their number, their time, and their share of the loop."""

    __slots__ = ("_is_scheduled", "_loop", "_spent_s", "_timer", "_under_way", "_waiting")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way: dict[TlsStream, float] = {}
        """When each has begun, the oldest first."""
        self._waiting: deque[TlsStream] = deque()
        self._spent_s = 0.0
        """In this turn of the loop."""
        self._is_scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    def shake(self, stream: TlsStream) -> None:
        """Bytes have come for a handshake: go on with it, now or when it is its turn."""
        if stream not in self._under_way:
            self._begin(stream)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take_turn)
        if self._waiting or self._spent_s >= HANDSHAKES_TURN_S:
            stream.wait_for_turn()
            self._waiting.append(stream)
        else:
            self._go_on(stream)

    def end(self, stream: TlsStream) -> None:
        """It is over, one way or the other."""
        self._under_way.pop(stream, None)
        if self._timer is not None and not self._under_way:
            self._timer.cancel()
            self._timer = None

    def _begin(self, stream: TlsStream) -> None:
        if len(self._under_way) >= HANDSHAKES_MAX:
            oldest = next(iter(self._under_way))
            oldest.give_up(f"its handshake was the oldest of {HANDSHAKES_MAX} that had not ended, and others wait")
        self._under_way[stream] = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(HANDSHAKE_S_MAX, self._expire)

    def _go_on(self, stream: TlsStream) -> None:
        began_s = self._loop.time()
        stream.shake_in_turn()
        self._spent_s += self._loop.time() - began_s

    def _take_turn(self) -> None:
        self._is_scheduled = False
        self._spent_s = 0.0
        waiting = self._waiting
        while waiting and self._spent_s < HANDSHAKES_TURN_S:
            self._go_on(waiting.popleft())
        if waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take_turn)

    def _expire(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        while self._under_way:
            stream, began_s = next(iter(self._under_way.items()))
            if now_s < began_s + HANDSHAKE_S_MAX:
                self._timer = self._loop.call_at(began_s + HANDSHAKE_S_MAX, self._expire)
                return
            stream.give_up(f"its handshake had not ended after {HANDSHAKE_S_MAX:.0f} s")


class _RestOfRange:
    """What is left of a file range that is being encrypted."""

    __slots__ = ("_at", "_range", "length", "position")

    def __init__(self, whole: Sendable, at: int) -> None:
        assert not isinstance(whole, BYTE_TYPES)
        self._range, self._at = whole, at
        self.position, self.length = whole.position + at, len(whole) - at

    def __len__(self) -> int:
        return self.length

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        return self._range.read(self._at + start, self.length - start if length is None else length)

    def is_resident(self) -> bool:
        return self._range.is_resident()

    def next_piece(self) -> tuple[memoryview, _RestOfRange | None]:
        size = min(PIECE_BYTES, self.length)
        piece = memoryview(self._range.read(self._at, size))
        return piece, None if size == self.length else _RestOfRange(self._range, self._at + size)
