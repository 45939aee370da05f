"""Splits a stream of received bytes into frames (an int32 size, then that many bytes), without IO.

The owner of a socket receives into `writable()` and calls `received(count)`, which returns the frames that are now complete.
Every frame is its own bytearray, which its request then owns. Small frames are copied out of a read-ahead buffer. Many
splitters may share that buffer, because nothing stays in it between calls. A frame that is incomplete there gets its own
buffer, and the rest of it is received straight into that.

A size that is negative or beyond the limit raises `InvalidFrame` before anything is allocated; the stream is then unusable.
A peer may announce a size and never send the bytes: the first buffer of a frame of which little has come is `FIRST_BYTES`, and
beyond `AT_ONCE_BYTES` it grows as it fills. For every frame above `FREE_BYTES` the splitter calls `reserve` before it allocates
more than the first. If that refuses, the splitter `is_starved` and takes no bytes until `grow` succeeds. When such a frame is
complete, exactly its size has been reserved.

A client's splitter uses the buffers of large frames again (`reuses`): fresh pages for a fetch's megabytes cost more processor
time than the bytes received into them. It takes a buffer back only if nothing refers to it or views it any more.
"""

import sys
from collections.abc import Callable
from struct import Struct
from typing import Final

from ottla.errors import DecodeError

_SIZE: Final = Struct(">i")
READ_AHEAD_BYTES: Final = 64 * 1024
FREE_BYTES: Final = READ_AHEAD_BYTES
"""Frames up to this size need no reservation: they fit into the read-ahead that every connection has anyway."""

FIRST_BYTES: Final = 4 * 1024
"""Thousands of connections that send a size and nothing else hold no more than this each."""

AT_ONCE_BYTES: Final = (1 << 20) + FREE_BYTES
"""Frames up to this size get their whole buffer at once. Producers send no more than this by default."""

STEP_BYTES_MAX: Final = 8 << 20
STEP_BYTES_MIN: Final = 64 * 1024

REUSED_BYTES_MIN: Final = 256 * 1024
REUSED_BYTES_MAX: Final = 16 << 20
"""The sizes of frames whose buffers are kept for the next ones; they get their whole buffer at once."""

KEPT_FRAMES: Final = 3
"""One that is read, one that waits to be read, and one that arrives."""


def _references(kept: list[bytearray], number: int) -> int:
    """How often the buffer at this place is referred to, by the list too. Only the difference to `_OWN_REFERENCES` means
    anything: what the names and the argument here count for depends on the Python (3.14 borrows both)."""
    return sys.getrefcount(kept[number])


_OWN_REFERENCES: Final = _references([bytearray()], 0)

_TLS_HANDSHAKE: Final = 0x160300
_TLS_HANDSHAKE_NEWEST: Final = 0x160304
"""How a TLS handshake begins: the kind of record and the version. As a size it is 369 MB."""

Reserve = Callable[[int], bool]
"""Asks for so many more bytes of memory; False: refused."""


class InvalidFrame(DecodeError):
    """The peer announced a frame of an invalid size: close the connection."""


class FrameSplitter:
    """The receiving half of one connection."""

    __slots__ = (
        "_ahead",
        "_ahead_view",
        "_carried",
        "_frame",
        "_frame_filled",
        "_frame_size",
        "_kept",
        "_reserve",
        "_reuses",
        "_size_bytes_max",
        "reserved_bytes",
    )

    def __init__(
        self,
        size_bytes_max: int,
        read_ahead: bytearray | None = None,
        reserve: Reserve | None = None,
        *,
        reuses: bool = False,
    ) -> None:
        """`reuses` is for peers that are trusted with `REUSED_BYTES_MAX` bytes, and needs no `reserve`."""
        self._size_bytes_max = size_bytes_max
        self._reuses = reuses
        self._kept: list[bytearray] = []
        self._ahead = read_ahead if read_ahead is not None else bytearray(READ_AHEAD_BYTES)
        self._ahead_view = memoryview(self._ahead)
        self._carried = b""  # a size that is still incomplete: up to 3 bytes
        self._frame: bytearray | None = None
        self._frame_filled = 0
        self._frame_size = 0
        self._reserve = reserve
        self.reserved_bytes = 0
        """The bytes reserved for the incomplete frame. For a complete frame they equal its size."""

    @property
    def is_between_frames(self) -> bool:
        """Whether the stream could end here without cutting a frame."""
        return self._frame is None and not self._carried

    @property
    def is_starved(self) -> bool:
        """Whether `writable` is empty until `grow` succeeds."""
        return self._frame is not None and self._frame_filled == len(self._frame)

    def limit(self, size_bytes_max: int) -> None:
        """Allow frames of another size from the next one on."""
        self._size_bytes_max = size_bytes_max

    def writable(self) -> memoryview:
        """The buffer for the next bytes; empty only if the splitter is starved. Release it before calling `received`."""
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_filled :]
        if self._carried:
            self._ahead[: len(self._carried)] = self._carried
        return self._ahead_view[len(self._carried) :]

    def received(self, count: int) -> list[bytearray]:
        """Account for `count` bytes written to `writable()`. Returns the frames that are now complete, in order."""
        if self._frame is None:
            return self._split_ahead(len(self._carried) + count)
        self._frame_filled += count
        if self._frame_filled < len(self._frame):
            return []
        if self._frame_filled < self._frame_size:
            self.grow()
            return []
        frame, self._frame = self._frame, None
        self.reserved_bytes = 0
        return [frame]

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytearray]:
        """Copy in bytes received elsewhere. Returns the frames that are now complete, in order. Not for a starved splitter."""
        frames = []
        rest = memoryview(data)
        while len(rest):
            target = self.writable()
            count = min(len(target), len(rest))
            target[:count] = rest[:count]
            del target
            frames += self.received(count)
            rest = rest[count:]
        return frames

    def grow(self) -> bool:
        """Reserve more memory for the incomplete frame. False if there is still no room."""
        frame = self._frame
        assert frame is not None
        capacity = self._granted_capacity(len(frame))
        if capacity > len(frame):
            frame.extend(bytes(capacity - len(frame)))
        return not self.is_starved

    def abandon(self) -> int:
        """Drop the incomplete frame, because no more of it comes. Returns the bytes that were reserved for it."""
        reserved_bytes, self.reserved_bytes = self.reserved_bytes, 0
        self._frame = None
        return reserved_bytes

    def _split_ahead(self, filled: int) -> list[bytearray]:
        frames: list[bytearray] = []
        ahead, start = self._ahead, 0
        while filled - start >= 4:
            (size,) = _SIZE.unpack_from(ahead, start)
            if not 0 <= size <= self._size_bytes_max:
                raise InvalidFrame(_explain_size(size, self._size_bytes_max))
            start += 4
            if size > filled - start:
                self._begin(size, start, filled)
                return frames
            frames.append(ahead[start : start + size])
            start += size
            self._kept.clear()  # answers are small now: the memory is better used elsewhere
        self._carried = bytes(ahead[start:filled]) if start < filled else b""
        return frames

    def _begin(self, size: int, start: int, filled: int) -> None:
        """Move a frame that is incomplete in the read-ahead buffer to its own buffer."""
        self._carried = b""
        self._frame_size = size
        self._frame_filled = here = filled - start
        if self._reuses and REUSED_BYTES_MIN <= size <= REUSED_BYTES_MAX:
            self._frame = frame = self._kept_buffer(size)
        else:
            at_first = min(size, FIRST_BYTES)
            self._frame = frame = bytearray(at_first if here < at_first else self._granted_capacity(here))
        frame[:here] = self._ahead_view[start:filled]

    def _kept_buffer(self, size: int) -> bytearray:
        """A buffer of `size` bytes for a frame, from an earlier frame if one is free."""
        self.reserved_bytes = size
        kept = self._kept
        for number in range(len(kept)):
            if _references(kept, number) <= _OWN_REFERENCES and size // 2 <= len(kept[number]) <= size * 2:
                frame = kept[number]
                try:
                    if len(frame) > size:
                        del frame[size:]
                    else:
                        frame.extend(bytes(size - len(frame)))
                        frame.append(frame.pop())  # refused if there are views, also where nothing was added
                except BufferError:
                    continue
                return frame
        frame = bytearray(size)
        if len(kept) >= KEPT_FRAMES:
            del kept[0]
        kept.append(frame)
        return frame

    def _granted_capacity(self, capacity: int) -> int:
        """The new size of the frame's buffer, which has `capacity` bytes now: larger if `reserve` grants more."""
        size, reserve = self._frame_size, self._reserve
        if size <= FREE_BYTES:
            return size
        at_least = min(size, capacity + STEP_BYTES_MIN)
        preferred = size if size <= AT_ONCE_BYTES else min(size, capacity + max(AT_ONCE_BYTES, min(capacity, STEP_BYTES_MAX)))
        for wanted in (preferred, at_least):
            if reserve is None or reserve(wanted - self.reserved_bytes):
                self.reserved_bytes = wanted
                return wanted
        return capacity


def _explain_size(size: int, size_max: int) -> str:
    if _TLS_HANDSHAKE <= size >> 8 <= _TLS_HANDSHAKE_NEWEST:
        return (
            "the peer began a TLS handshake where no TLS is spoken: its security.protocol must be PLAINTEXT or SASL_PLAINTEXT "
            "here, or it has the wrong port"
        )
    return (
        f"the peer announced a frame of {size} bytes, where 0 to {size_max} are allowed: "
        "it may not be speaking Kafka's protocol, or may be sending too much at once"
    )
