"""Runs a node in a child process, the parent's side (`child.py` is the other end). Called on the loop of the helpers.

The child is a new interpreter, not a fork: the test's process has threads, locks and sockets that a copy must not have. It ends
when its stdin does, so it does not outlive this process, however that ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from ottla.testing.errors import BrokerFailed
from ottla.testing.host import Facts, Launch
from ottla.testing.logs import LINES_KEPT

CHILD = "import gc; gc.disable(); from ottla.testing.child import main; main()"
"""No garbage collection until the node runs: imports create no garbage, but would trigger many collections."""
_LINE_BYTES_MAX = 16 * 1024 * 1024
_LINES_SHOWN = 20
_SETTLE_S = 2.0


class ProcessHost:
    """`Host` of one run of a node."""

    def __init__(self, on_spawn: Callable[[int], None] = lambda pid: None) -> None:
        self._on_spawn = on_spawn
        self._process: asyncio.subprocess.Process | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._readers: list[asyncio.Task[None]] = []
        self._is_ending = False
        self.left = asyncio.Event()
        """Set when a stopping node of a cluster waits for `release`, or its process has ended."""
        self.failure: BrokerFailed | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log_lines(self) -> list[str]:
        return list(self._lines)

    async def start(self, launch: Launch) -> Facts:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            CHILD,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES_MAX,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._on_spawn(self._process.pid)
        self._readers = [asyncio.ensure_future(self._read_answers()), asyncio.ensure_future(self._read_log())]
        try:
            return Facts(*await self.command("start", launch._asdict()))
        except BaseException as error:
            await self.kill()
            if isinstance(error, BrokerFailed):
                raise BrokerFailed(f"the broker did not start: {error}") from error
            raise

    async def stop(self) -> None:
        try:
            await self.command("stop", {}, is_last=True)
        except BrokerFailed:
            await self.kill()
            raise
        assert self._process is not None
        await self._process.wait()
        await asyncio.gather(*self._readers)

    async def kill(self) -> None:
        assert self._process is not None
        self._is_ending = True
        try:
            self._process.send_signal(signal.SIGKILL)
        except ProcessLookupError:
            pass
        await self._process.wait()
        await asyncio.gather(*self._readers)

    def send_signal(self, number: signal.Signals) -> None:
        """Send the process a signal; an ended one gets none."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def settle(self) -> None:
        await asyncio.wait(self._readers[:1], timeout=_SETTLE_S)

    async def command(self, name: str, values: dict[str, Any], is_last: bool = False) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        if self._readers[0].done():
            raise self.failure or BrokerFailed(f"the broker's process {self.pid} has ended")
        command_id, self._next_id = self._next_id, self._next_id + 1
        answer = self._answers[command_id] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": command_id, "do": name, "with": values}).encode("ascii") + b"\n"
        try:
            self._process.stdin.write(line)
            await self._process.stdin.drain()
        except ConnectionError:
            pass  # it has died: `_read_answers` raises its exit code and last lines
        self._is_ending = self._is_ending or is_last
        return await answer

    async def _read_answers(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            if "broken" in message:
                self.failure = BrokerFailed(f"the broker stopped by itself: {message['broken']}")
                continue
            if "left" in message:
                self.left.set()
                continue
            answer = self._answers.pop(message["id"])
            if answer.done():
                continue
            if "error" in message:
                answer.set_exception(BrokerFailed(message["error"]))
            else:
                answer.set_result(message["result"])
        self.left.set()
        code = await self._process.wait()
        if not self._is_ending and self.failure is None:
            said = "\n".join(list(self._lines)[-_LINES_SHOWN:]) or "nothing"
            self.failure = BrokerFailed(f"the broker's process {self._process.pid} ended with code {code}. It said:\n{said}")
        ended = self.failure or BrokerFailed(f"the broker's process {self._process.pid} has ended")
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_exception(ended)

    async def _read_log(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self._lines.append(line.decode("utf-8", "replace").rstrip("\n"))
