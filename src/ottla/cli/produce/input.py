"""Reads files and standard input, and cuts them at a delimiter.

Bytes stay as they are: only the delimiter is taken away, so a carriage return before a line feed belongs to its line. No thread
blocks on the input, so that the command can end at any time.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
from collections.abc import Sequence
from typing import NamedTuple

from ottla.cli.produce.options import RECORD_BYTES_MAX
from ottla.errors import OttlaError
from ottla.errors.texts import sized

PIECE_BYTES = 256 * 1024
STANDARD_INPUT = "-"
SHOWN_INPUT = "standard input"


class BadInput(OttlaError):
    """A part of the input from which no record can be made. Its text names the place."""


class Lines(NamedTuple):
    """Consecutive parts of one input, without their delimiters."""

    lines: list[bytes]
    name: str
    first_number: int
    """The number of the first of them in its file, from 1 on; 0: the file is one part."""
    word: str = "line"

    def place(self, index: int) -> str:
        """Where one of them is: `orders.txt, line 7`."""
        if self.first_number == 0:
            return self.name
        return f"{self.name}, {self.word} {self.first_number + index:,}"


class Input:
    """The lines of files, one after the other. `STANDARD_INPUT` stands for the file descriptor `fd`."""

    def __init__(
        self, names: Sequence[str], fd: int | None, delimiter: bytes | None = b"\n", record_bytes_max: int = RECORD_BYTES_MAX
    ) -> None:
        self._names = list(names)
        self._fd = fd
        self._delimiter = delimiter
        """What ends a line; None: a file is one part."""
        self._record_bytes_max = record_bytes_max
        self._tail: list[bytes] = []
        """The beginning of a line whose end was not read yet, in pieces: joined once, however long it is."""
        self._current: int | None = None
        self._name = ""
        self._number = 1
        self.read_bytes = 0
        self.size_bytes = _size(names, fd)
        """How many bytes there are in all; None if that is not known."""

    async def next_lines(self) -> Lines | None:
        """The next lines, at least one; None at the end of the last file."""
        while True:
            if self._current is None:
                if not self._names:
                    return None
                self._open(self._names.pop(0))
            lines = await self._next_of_file()
            if lines:
                return self._numbered(lines)

    def close(self) -> None:
        """Close the file that is being read."""
        if self._current is not None and self._current != self._fd:
            os.close(self._current)
        self._current = None

    def _open(self, name: str) -> None:
        self._number = 1
        if name == STANDARD_INPUT:
            assert self._fd is not None
            self._current, self._name = self._fd, SHOWN_INPUT
        else:
            self._current, self._name = os.open(name, os.O_RDONLY), name

    async def _next_of_file(self) -> list[bytes]:
        """Some lines of the current file; at its end the last one, if it has no delimiter."""
        assert self._current is not None
        delimiter, tail = self._delimiter, self._tail
        edge = b""
        while True:
            await self._readable(self._current)
            piece = os.read(self._current, PIECE_BYTES)
            if not piece:
                self.close()
                rest = b"".join(tail)
                tail.clear()
                return [rest] if rest or delimiter is None else []
            self.read_bytes += len(piece)
            tail.append(piece)
            if delimiter is None:
                self._check_size()
                continue
            if len(delimiter) > 1:  # it may begin in one piece and end in the next
                edge = b"".join(tail) if len(tail) <= 2 else edge + piece
            if delimiter not in (edge or piece):
                edge = edge[-len(delimiter) :]
                self._check_size()
                continue
            lines = b"".join(tail).split(delimiter)
            tail[:] = [lines.pop()]
            return lines

    def _check_size(self) -> None:
        """Refuse a record that cannot be sent before it fills the memory."""
        if sum(map(len, self._tail)) > self._record_bytes_max:
            place = self._numbered([b""]).place(0)
            raise BadInput(
                f"{place} is larger than a record can be, which is {sized(self._record_bytes_max)} (max.request.size). Check "
                "--delimiter, or raise the limit: --command-property max.request.size=… and the topic's max.message.bytes"
            )

    @property
    def _word(self) -> str:
        return "line" if self._delimiter == b"\n" else "record"

    def _numbered(self, lines: list[bytes]) -> Lines:
        if self._delimiter is None:
            return Lines(lines, self._name, 0)
        first = self._number
        self._number += len(lines)
        return Lines(lines, self._name, first, self._word)

    async def _readable(self, fd: int) -> None:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if poll.poll(0):
            await asyncio.sleep(0)  # a file is always readable: let other tasks run
            return
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(fd)


def _size(names: Sequence[str], fd: int | None) -> int | None:
    """The size of all inputs together, if each is a file of the disk."""
    total = 0
    for name in names:
        try:
            found = os.fstat(fd) if name == STANDARD_INPUT and fd is not None else os.stat(name)
            at = os.lseek(fd, 0, os.SEEK_CUR) if name == STANDARD_INPUT and fd is not None else 0
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        total += max(0, found.st_size - at)
    return total
