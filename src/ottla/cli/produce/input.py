"""Reads lines from standard input: in large pieces from a pipe or file, one by one from a terminal.

No thread blocks on the input, so that the command can end at any time. A line ends with a line feed, a carriage return, or
both, as in Kafka's tool.
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
        """The next lines, at least one; None at the end of the input."""
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
        """Whether a read would return data, or the end, without waiting."""
        return self._is_ended or bool(select.select([self._fd], [], [], 0)[0])

    def _split(self, piece: bytes) -> list[bytes]:
        data = self._tail + piece if self._tail else piece
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) > TAIL_BYTES_MAX:
            end = data.rfind(b"\r", 0, -1) + 1  # not one at the very end: its line feed may follow
        self._tail = data[end:]
        return data[:end].splitlines()

    async def wait(self, limit_ms: int) -> bool:
        """Wait up to `limit_ms` for input; returns whether there is some."""
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._readable()
        except TimeoutError:
            return False
        return True

    async def _readable(self) -> None:
        if self.has_more_now:
            await asyncio.sleep(0)  # a file is always readable: let other tasks run
            return
        ready = asyncio.Event()
        self._loop.add_reader(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(self._fd)
