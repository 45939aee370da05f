"""Frames: an int32 size, then that many bytes. Splits a stream of received bytes into frames, without IO.

The owner of a socket receives into `writable()` and reports with `received(count)`, which returns the frames completed by it.
Every frame is a bytearray of its own, which its request owns from then on. Small frames are copied out of a read-ahead buffer,
which many splitters may share, since nothing stays in it between calls; a frame that is not complete there gets a buffer of its
own, and the rest of it is received straight into that.

A size that is negative or beyond the limit is refused before anything is allocated for it, and the stream is then of no use. A
size is also no reason to believe that the bytes will come: beyond `AT_ONCE_BYTES` a frame's buffer grows as it fills. And for
every frame above `FREE_BYTES` the owner is asked before memory is taken (`reserve`); if it refuses, the splitter `is_starved`:
it cannot take in more until `grow` succeeds. By the time such a frame is complete, exactly its size has been reserved.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from ottla.errors import DecodeError

_SIZE: Final = Struct(">i")
READ_AHEAD_BYTES: Final = 64 * 1024
FREE_BYTES: Final = READ_AHEAD_BYTES
"""Frames up to here are not asked for: they are no larger than what a connection may always have unread."""

AT_ONCE_BYTES: Final = (1 << 20) + FREE_BYTES
"""Frames up to here get their whole buffer at once: what producers send by default."""

STEP_BYTES_MAX: Final = 8 << 20
STEP_BYTES_MIN: Final = 64 * 1024

Reserve = Callable[[int], bool]
"""May that many more bytes be taken?"""


class InvalidFrame(DecodeError):
    """The peer announced a frame of a size that cannot be: close the connection."""


class FrameSplitter:
    """The receiving half of one connection."""

    __slots__ = (
        "_ahead",
        "_ahead_view",
        "_carried",
        "_frame",
        "_frame_filled",
        "_frame_size",
        "_reserve",
        "_size_bytes_max",
        "reserved_bytes",
    )

    def __init__(self, size_bytes_max: int, read_ahead: bytearray | None = None, reserve: Reserve | None = None) -> None:
        self._size_bytes_max = size_bytes_max
        self._ahead = read_ahead if read_ahead is not None else bytearray(READ_AHEAD_BYTES)
        self._ahead_view = memoryview(self._ahead)
        self._carried = b""  # a size that is still incomplete: up to 3 bytes
        self._frame: bytearray | None = None
        self._frame_filled = 0
        self._frame_size = 0
        self._reserve = reserve
        self.reserved_bytes = 0
        """What was granted for the frame that is incomplete. The owner of a frame that is complete knows: all of it."""

    @property
    def is_between_frames(self) -> bool:
        """Whether the stream could end here without cutting a frame."""
        return self._frame is None and not self._carried

    @property
    def is_starved(self) -> bool:
        """Whether `writable` has nothing to offer until `grow` is granted more."""
        return self._frame is not None and self._frame_filled == len(self._frame)

    def writable(self) -> memoryview:
        """Where the next bytes go; never empty, unless the splitter is starved. Let go of it before `received`."""
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_filled :]
        if self._carried:
            self._ahead[: len(self._carried)] = self._carried
        return self._ahead_view[len(self._carried) :]

    def received(self, count: int) -> list[bytearray]:
        """Take note of `count` bytes written to `writable()`; the frames that are complete now, in order."""
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
        """Take in bytes that were received elsewhere; the frames that are complete now, in order. Not for starving ones."""
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
        """Ask for more room for the frame that is coming in; whether there is any now."""
        frame = self._frame
        assert frame is not None
        capacity = self._granted_capacity(len(frame))
        if capacity > len(frame):
            frame.extend(bytes(capacity - len(frame)))
        return not self.is_starved

    def abandon(self) -> int:
        """Let go of the frame that is incomplete: no more of it comes. Returns what was reserved for it."""
        reserved_bytes, self.reserved_bytes = self.reserved_bytes, 0
        self._frame = None
        return reserved_bytes

    def _split_ahead(self, filled: int) -> list[bytearray]:
        frames: list[bytearray] = []
        ahead, start = self._ahead, 0
        while filled - start >= 4:
            (size,) = _SIZE.unpack_from(ahead, start)
            if not 0 <= size <= self._size_bytes_max:
                raise InvalidFrame(
                    f"the peer announced a frame of {size} bytes, where 0 to {self._size_bytes_max} are allowed: "
                    "it may not be speaking Kafka's protocol, or may be sending too much at once"
                )
            start += 4
            if size > filled - start:
                self._begin(size, start, filled)
                return frames
            frames.append(ahead[start : start + size])
            start += size
        self._carried = bytes(ahead[start:filled]) if start < filled else b""
        return frames

    def _begin(self, size: int, start: int, filled: int) -> None:
        """A frame that is not complete in the read-ahead buffer moves to one of its own."""
        self._carried = b""
        self._frame_size = size
        self._frame_filled = here = filled - start
        self._frame = frame = bytearray(size if size <= FREE_BYTES else self._granted_capacity(here))
        frame[:here] = self._ahead_view[start:filled]

    def _granted_capacity(self, capacity: int) -> int:
        """How large the frame's buffer may be, that has `capacity` bytes now: larger, if more is granted."""
        size, reserve = self._frame_size, self._reserve
        at_least = min(size, capacity + STEP_BYTES_MIN)
        usual = size if size <= AT_ONCE_BYTES else min(size, capacity + max(AT_ONCE_BYTES, min(capacity, STEP_BYTES_MAX)))
        for wanted in (usual, at_least):
            if reserve is None or reserve(wanted - self.reserved_bytes):
                self.reserved_bytes = wanted
                return wanted
        return capacity
