"""Frames: an int32 size, then that many bytes. Splits a stream of received bytes into frames, without IO.

The owner of a socket receives into `writable()` and reports with `received(count)`, which returns the frames completed by it.
Every frame is a bytearray of its own, which its request owns from then on. Small frames are copied out of a read-ahead buffer;
a frame that is not complete there gets its own buffer at once, and the rest of it is received straight into that.
A size that is negative or beyond the limit is refused before anything is allocated for it, and the stream is then of no use.
"""

from struct import Struct
from typing import Final

from ottla.errors import DecodeError

_SIZE: Final = Struct(">i")
READ_AHEAD_BYTES: Final = 64 * 1024


class InvalidFrame(DecodeError):
    """The peer announced a frame of a size that cannot be: close the connection."""


class FrameSplitter:
    """The receiving half of one connection."""

    __slots__ = ("_ahead", "_ahead_filled", "_ahead_view", "_frame", "_frame_filled", "_size_bytes_max")

    def __init__(self, size_bytes_max: int, read_ahead_bytes: int = READ_AHEAD_BYTES) -> None:
        self._size_bytes_max = size_bytes_max
        self._ahead = bytearray(max(read_ahead_bytes, _SIZE.size))
        self._ahead_view = memoryview(self._ahead)
        self._ahead_filled = 0  # between calls never more than 3: a size that is still incomplete
        self._frame: bytearray | None = None
        self._frame_filled = 0

    @property
    def is_between_frames(self) -> bool:
        """Whether the stream could end here without cutting a frame."""
        return self._frame is None and self._ahead_filled == 0

    def writable(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_filled :]
        return self._ahead_view[self._ahead_filled :]

    def received(self, count: int) -> list[bytearray]:
        """Take note of `count` bytes written to `writable()`; the frames that are complete now, in order."""
        if self._frame is None:
            return self._split_ahead(self._ahead_filled + count)
        self._frame_filled += count
        if self._frame_filled < len(self._frame):
            return []
        frame, self._frame = self._frame, None
        return [frame]

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytearray]:
        """Take in bytes that were received elsewhere; the frames that are complete now, in order."""
        frames = []
        rest = memoryview(data)
        while len(rest):
            target = self.writable()
            count = min(len(target), len(rest))
            target[:count] = rest[:count]
            frames += self.received(count)
            rest = rest[count:]
        return frames

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
                self._frame = frame = bytearray(size)
                self._frame_filled = filled - start
                frame[: self._frame_filled] = self._ahead_view[start:filled]
                self._ahead_filled = 0
                return frames
            frames.append(ahead[start : start + size])
            start += size
        self._ahead_filled = filled - start
        if start and self._ahead_filled:
            ahead[: self._ahead_filled] = ahead[start:filled]
        return frames
