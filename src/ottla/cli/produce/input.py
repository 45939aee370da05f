"""Lines from standard input, as they come: in large pieces from a pipe or file, one by one from a person.

No thread waits for input, so that the end of the command never does. A line ends with a line feed, a carriage return, or both,
as in Kafka's tool.
"""

from __future__ import annotations

import asyncio
import os
import select

PIECE_BYTES = 256 * 1024
TAIL_BYTES_MAX = 1024 * 1024


class LineInput:
    """The lines of a file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._tail = b""
        self._is_ended = False

    async def next_lines(self) -> list[bytes] | None:
        """The lines that have come since, at least one; None at the end."""
        while not self._is_ended:
            await self._readable()
            piece = os.read(self._fd, PIECE_BYTES)
            if not piece:
                self._is_ended = True
                break
            lines = self._split(piece)
            if lines:
                return lines
        rest, self._tail = self._tail, b""
        return rest.splitlines() if rest else None

    @property
    def has_more_now(self) -> bool:
        """Whether reading on would bring something, or the end, without waiting."""
        return self._is_ended or bool(select.select([self._fd], [], [], 0)[0])

    def _split(self, piece: bytes) -> list[bytes]:
        data = self._tail + piece if self._tail else piece
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) > TAIL_BYTES_MAX:
            end = data.rfind(b"\r", 0, -1) + 1  # one at the very end may have its line feed still to come
        self._tail = data[end:]
        return data[:end].splitlines()

    async def wait(self, limit_ms: int) -> bool:
        """Wait for more input, but not longer than told; whether it has come."""
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._readable()
        except TimeoutError:
            return False
        return True

    async def _readable(self) -> None:
        if self.has_more_now:
            await asyncio.sleep(0)  # others have their turn: a file is always readable
            return
        ready = asyncio.Event()
        self._loop.add_reader(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(self._fd)
