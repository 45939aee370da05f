"""An `EchoServer` in a process of its own, on real sockets: prints its port, and ends when its stdin does.

python -m tests.fuzz.echo_process QUEUED_MAX_REQUEST_BYTES
"""

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.support.nodes.net_server import EchoServer

from ottla.broker.net.settings import NetSettings
from ottla.env.real import RealNetwork

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


async def serve(memory_bytes: int) -> None:
    server = EchoServer(RealNetwork(), NetSettings(queued_max_request_bytes=memory_bytes))
    print(await server.start(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.listeners.close()


class EchoProcess:
    """The server process: its port, its memory and, after the block, its log."""

    def __init__(self, memory_bytes: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.echo_process", str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.log = ""

    def __enter__(self) -> "EchoProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            _, self.log = self._process.communicate("", timeout=60)
        finally:
            self._process.kill()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def memory_bytes(self) -> int:
        """Its resident memory now."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * PAGE_BYTES


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(serve(int(sys.argv[1])))
