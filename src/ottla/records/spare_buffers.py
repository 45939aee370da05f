"""`SpareBuffers`: large buffers that are used again once nothing views them any more.

The pages of a fresh buffer cost more processor time than the bytes that are copied into it. Callers get views, so a bytearray
that has views is in use: it refuses to be resized. One thread at a time.
"""

from __future__ import annotations

from ottla.records.kernels import new_buffers

SPARE_BYTES_MIN = 64 * 1024
"""Smaller buffers come from memory that the allocator keeps anyway."""
SPARE_BYTES_MAX = 16 << 20
"""The most that all buffers that are kept may take. Those in use count: they are the next ones to be free."""


class SpareBuffers:
    """The buffers of one owner."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    @property
    def kept_bytes(self) -> int:
        """The size of all buffers that are kept, those in use included."""
        return sum(map(len, self._kept))

    def take(self, size: int) -> memoryview:
        """A view of `size` bytes, whose content is not defined."""
        for number, buffer in enumerate(self._kept):
            if size <= len(buffer) <= size * 2 and _is_free(buffer):
                self._kept.append(self._kept.pop(number))  # the one that was not used for longest is dropped first
                return memoryview(buffer)[:size]
        (buffer,) = new_buffers([size])
        if SPARE_BYTES_MIN <= size <= SPARE_BYTES_MAX:
            self._kept.append(buffer)
            while self.kept_bytes > SPARE_BYTES_MAX:
                del self._kept[0]
        return memoryview(buffer)

    def clear(self) -> None:
        """Keep none: the memory is better used elsewhere."""
        self._kept.clear()


def _is_free(buffer: bytearray) -> bool:
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
