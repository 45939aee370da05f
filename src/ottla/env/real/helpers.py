"""The parent's side of helper processes (`child.py` is the child's side).

A helper is a new interpreter: `python -P -m ottla.env.real.child MODULE`. It is never a fork of this process, nor
`multiprocessing`: the parent has threads, locks and sockets that a copy must not have.

The protocol: the parent writes the job as one line of JSON to the child's stdin and keeps stdin open. The child ends itself
when it reads the end of stdin, so it does not outlive this process. The child writes lines of JSON to stdout: {"progress": …}
any number of times, then {"result": …} or {"error": …}. The end of its stderr goes into the error's text.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping

from ottla.env.uninterrupted import uninterrupted
from ottla.env.work import HelperDied, Progress
from ottla.errors import OttlaError

CHILD = "ottla.env.real.child"
LINE_BYTES_MAX = 64 * 1024 * 1024
STDERR_BYTES_SHOWN = 4_000


class ProcessHelpers:
    """`Helpers` as child processes, at most `processes_max` at a time; further jobs wait their turn."""

    def __init__(self, processes_max: int = 2) -> None:
        self._turns = asyncio.Semaphore(processes_max)

    async def run(self, module: str, job: Mapping[str, object], on_progress: Progress | None = None) -> dict[str, object]:
        line = json.dumps(job).encode("ascii") + b"\n"
        async with self._turns:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                CHILD,
                module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            try:
                return await _converse(process, module, line, on_progress)
            finally:
                await _end(process)


async def _converse(
    process: asyncio.subprocess.Process, module: str, line: bytes, on_progress: Progress | None
) -> dict[str, object]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.ensure_future(_last_bytes(process.stderr))
    try:
        try:
            process.stdin.write(line)
            await process.stdin.drain()
        except ConnectionError:
            pass  # the child died at once; its stderr, read below, says why
        async for answer in process.stdout:
            message = json.loads(answer)
            if "progress" in message:
                if on_progress is not None:
                    on_progress(message["progress"])
            elif "result" in message:
                result: dict[str, object] = message["result"]
                return result
            else:
                raise _failure(module, message["error"])
        code = await process.wait()
        text = (await complaints).decode("utf-8", "replace").strip()
    finally:
        complaints.cancel()
    raise HelperDied(f"the helper process for {module} ended with code {code} without a result. Its stderr: {text or 'empty'}")


def _failure(module: str, error: dict[str, object]) -> Exception:
    text = str(error["text"])
    number = error.get("errno")
    if isinstance(number, int):
        path = error.get("path")
        return OSError(number, text, path) if isinstance(path, str) else OSError(number, text)
    return OttlaError(f"{text} (in the helper process for {module})")


async def _last_bytes(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end and return the tail, so that a child that writes much neither blocks nor fills our memory."""
    tail = b""
    while chunk := await stream.read(65_536):
        tail = (tail + chunk)[-STDERR_BYTES_SHOWN:]
    return tail


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the child and reap it. Once it has sent its result, killing it loses nothing."""
    try:
        process.kill()
    except ProcessLookupError:
        pass
    await uninterrupted(process.wait())
