"""The control socket of `ottla up`: other terminals ask it for the state of nodes, and to stop, start and add them.

A Unix socket in the data folder that only its user may open. A request is one line of JSON, `{"do": "restart", "node": 2}`.
The answer is lines of JSON: any number of `{"say": "…"}`, and at last `{"done": …}` or `{"error": "…"}`. After
`{"stopping": true}` the end of the connection says that `ottla up` has ended. One request at a time is worked on.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from ottla.errors import OttlaError

NAME = ".ottla-up.sock"
REQUEST_S_MAX = 10
REQUEST_BYTES_MAX = 1 << 16
_PATH_BYTES_MAX = 100
"""The kernel's limit is 108 on Linux and 104 on macOS."""

Line = dict[str, Any]
Answer = Callable[[Line], AsyncIterator[Line]]


class ControlServer:
    """The socket of one `ottla up`. `answer` yields the lines for a request; an error that it raises is the last line."""

    def __init__(self, data: Path, answer: Answer) -> None:
        self._path = data / NAME
        self._answer = answer
        self._busy = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._working: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Listen. What an `ottla up` that was killed has left is replaced: the nodes' locks say that no other is alive."""
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            with _short(self._path) as path:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                bound.bind(path)
        except OSError as error:
            bound.close()
            raise OttlaError(f"{self._path} cannot be made: {error.strerror}") from error
        finally:
            os.umask(mask)
        self._server = await asyncio.start_unix_server(self._serve, sock=bound, limit=REQUEST_BYTES_MAX)

    async def close(self) -> None:
        """Accept nothing more and end what is under way. Closing twice is harmless."""
        if self._server is not None:
            self._server.close()
            self._server = None
            with suppress(FileNotFoundError):
                self._path.unlink()
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._working.add(task)
        try:
            async with asyncio.timeout(REQUEST_S_MAX):
                request = json.loads(await reader.readline())
            async with self._busy:
                await self._work(request, writer)
        except (OSError, ValueError, TimeoutError):
            pass  # the other side is gone, or is no `ottla`
        finally:
            self._working.discard(task)
            writer.close()

    async def _work(self, request: Line, writer: asyncio.StreamWriter) -> None:
        try:
            async for line in self._answer(request):
                await _send(writer, line)
        except click.ClickException as failure:
            await _send(writer, {"error": failure.format_message()})
        except OttlaError as failure:
            await _send(writer, {"error": str(failure)})


async def _send(writer: asyncio.StreamWriter, line: Line) -> None:
    writer.write(json.dumps(line).encode() + b"\n")
    await writer.drain()


def ask(data: Path, request: Line) -> Iterator[Line]:
    """The lines that the `ottla up` on `data` answers; `OttlaError` for an error, and if none runs."""
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with asking:
        try:
            with _short(data / NAME) as path:
                asking.connect(path)
        except OSError:
            raise OttlaError(
                f"no `ottla up` is ready on {data}: start it, wait until it says that it is up, or name its folder with --data"
            ) from None
        asking.sendall(json.dumps(request).encode() + b"\n")
        last: Line = {}
        with asking.makefile("r", encoding="utf-8") as lines:
            for text in lines:
                last = json.loads(text)
                if "error" in last:
                    raise OttlaError(last["error"])
                yield last
        if "done" not in last and "stopping" not in last:
            raise OttlaError(f"`ottla up` on {data} has ended meanwhile: its terminal says why")


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A name of `path` that fits into a socket's address: through a descriptor of its folder if it is too long."""
    if len(os.fsencode(path)) <= _PATH_BYTES_MAX or not os.path.isdir("/proc/self/fd"):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
