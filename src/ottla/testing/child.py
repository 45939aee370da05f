"""A node in a child process, the child's side (`process_host.py` is the other end, and starts it).

Commands come as lines of JSON on stdin, {"id": …, "do": name, "with": values}, the first of them `start`; each is answered on
stdout with {"id": …, "result": …} or {"id": …, "error": text}. {"broken": text} says that the node stopped by itself,
{"left": true} that a stopping node of a cluster waits for `release`. When stdin ends without a `stop`, the parent is gone: this
process then exits at once and removes temporary data. Log lines go to stderr.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import shutil
import signal
import sys
from typing import Any

from ottla.errors import OttlaError
from ottla.testing.host import Launch
from ottla.testing.logs import line_formatter
from ottla.testing.runner import NodeRunner

_LINE_BYTES_MAX = 16 * 1024 * 1024


class Child:
    """Reads the parent's commands and writes the responses."""

    def __init__(self, output_fd: int) -> None:
        self._output_fd = output_fd
        self._runner = NodeRunner()
        self._runner.on_broken = lambda text: self._say({"broken": text})
        self._runner.on_left = lambda: self._say({"left": True})
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._temporary: str | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(_LINE_BYTES_MAX)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        listening = loop.create_task(self._listen(reader))
        await self._over.wait()
        listening.cancel()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            task = asyncio.ensure_future(self._obey(json.loads(line)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        os._exit(1)  # the parent is gone: no clean shutdown is needed

    async def _obey(self, command: dict[str, Any]) -> None:
        name = command["do"]
        try:
            result = await self._do(name, command["with"])
        except OttlaError as error:
            self._say({"id": command["id"], "error": str(error)})
        except Exception as error:
            logging.getLogger("ottla.testing").exception("%s failed", name)
            self._say({"id": command["id"], "error": f"{type(error).__name__}: {error}"})
        else:
            self._say({"id": command["id"], "result": result})
        if name == "stop":
            self._over.set()

    async def _do(self, name: str, values: dict[str, Any]) -> Any:
        if name == "start":
            launch = Launch(**values)
            self._temporary = None if launch.is_synced else launch.settings["log.dirs"]
            facts = list(await self._runner.start(launch))
            gc.freeze()  # what is there now lives as long as the node
            gc.enable()
            return facts
        if name == "stop":
            return await self._runner.stop()
        return await self._runner.command(name, values)

    def _say(self, message: dict[str, Any]) -> None:
        line = memoryview(json.dumps(message).encode("ascii") + b"\n")
        while line:
            line = line[os.write(self._output_fd, line) :]


def main() -> None:
    # Responses keep the real stdout; other output goes to stderr, so that it cannot get between them.
    output_fd = os.dup(1)
    os.dup2(2, 1)
    # Ctrl-C on a terminal reaches all of its processes. The parent handles it, and sends `stop` if it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(line_formatter())
    package = logging.getLogger("ottla")
    package.addHandler(handler)
    package.setLevel(logging.INFO)
    asyncio.run(_run(output_fd))
    logging.shutdown()
    os._exit(0)  # everything is closed: an interpreter teardown would only delay the parent


async def _run(output_fd: int) -> None:
    await Child(output_fd).run()
