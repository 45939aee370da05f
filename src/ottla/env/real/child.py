"""The child's side of a helper process: `python -m ottla.env.real.child MODULE` (`helpers.py` describes the protocol).

The child lowers its priority, reads the job, calls `MODULE.run_job(job, world)` and writes the result. A thread watches stdin
and ends the process at once when the parent is gone. That is safe at any point: the parent uses a job's files only after it
has received the result.
"""

import asyncio
import errno
import importlib
import json
import os
import sys
import threading
import traceback

from ottla.env.real.clock import RealClock
from ottla.env.real.disk import RealDisk

NICENESS = 10


class ChildWorld:
    """`HelperWorld` of a child process: the real disk, synced in place, and the pipe to the parent."""

    def __init__(self, output_fd: int) -> None:
        self.disk = RealDisk()
        self.clock = RealClock()
        self._output_fd = output_fd

    def progress(self, report: dict[str, object]) -> None:
        self.send({"progress": report})

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def send(self, message: dict[str, object]) -> None:
        line = memoryview(json.dumps(message).encode("ascii") + b"\n")
        while line:
            line = line[os.write(self._output_fd, line) :]


def end_with_parent() -> None:
    """Block until the parent closes our stdin, then end the process at once."""
    while os.read(0, 4096):
        pass
    os._exit(1)


def read_line() -> bytes:
    """The job's line. Read from the descriptor, without `sys.stdin`'s buffer: the watcher thread reads the same descriptor."""
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        part = os.read(0, 1 << 20)
        if not part:
            os._exit(1)
        parts.append(part)
    return b"".join(parts)


def describe(error: BaseException) -> dict[str, object]:
    """The fields from which the parent rebuilds `error`."""
    if isinstance(error, OSError):
        path = error.filename if isinstance(error.filename, str) else None
        return {"text": error.strerror or str(error), "errno": error.errno or errno.EIO, "path": path}
    return {"text": str(error) or type(error).__name__}


def main() -> None:
    os.nice(NICENESS)
    # Messages to the parent use the original stdout. What a job prints goes to stderr, so it cannot corrupt them.
    output_fd = os.dup(1)
    os.dup2(2, 1)
    world = ChildWorld(output_fd)
    job = json.loads(read_line())
    threading.Thread(target=end_with_parent, name="parent-watch", daemon=True).start()
    try:
        module = importlib.import_module(sys.argv[1])
        result = asyncio.run(module.run_job(job, world))
    except Exception as error:
        traceback.print_exc()
        world.send({"error": describe(error)})
    else:
        world.send({"result": result})


if __name__ == "__main__":
    main()
