"""Statements of `ottla sql` that run for the console: each text in a process of its own, with its rows as they come.

The console never loads Spark. A job keeps its first rows, counts the others, and ends when it is stopped, when its process
ends, or with the console.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ottla.errors import OttlaError

RUNNING_MAX = 4
KEPT_MAX = 50
ROWS_MAX = 1_000
ROW_BYTES_MAX = 1 << 20
MESSAGES_MAX = 50
STOP_S = 10.0
CLOSE_S = 5.0
LIMIT_S = 8 * 3600.0
COMMAND = (sys.executable, "-m", "ottla", "sql", "--json", "--no-warm", "--file", "-", "--command-config")
"""Takes a file with settings as its last argument, and the statements from standard input."""


class Job:
    """One text of statements."""

    def __init__(self, text: str, user: str, cluster: str) -> None:
        self.id = secrets.token_urlsafe(9)
        self.text = text
        self.user = user
        self.cluster = cluster
        self.began_s = time.time()
        self.ended_s: float | None = None
        self.columns: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.skipped = 0
        """Rows that came after those that are kept."""
        self.messages: deque[str] = deque(maxlen=MESSAGES_MAX)
        self.code: int | None = None
        self.is_stopped = False
        self.process: asyncio.subprocess.Process | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self.ended_s is None

    def take(self, line: bytes) -> None:
        """A line of the process's output: a row as JSON."""
        if len(self.rows) >= ROWS_MAX:
            self.skipped += 1
            return
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            self.messages.append(line.decode("utf-8", "replace").rstrip())
            return
        self.columns += [name for name in row if name not in self.columns]
        self.rows.append(row)


class Jobs:
    """The jobs of a console."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def all(self) -> list[Job]:
        """The newest first."""
        return list(reversed(self._jobs.values()))

    def get(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def start(self, text: str, user: str, cluster: str, properties: Mapping[str, str]) -> Job:
        """Run statements. Raises if too many run already, or Spark is not installed."""
        if not is_installed():
            raise OttlaError("SQL needs Spark beside the console: pip install 'ottla[spark]'")
        if sum(each.is_running for each in self._jobs.values()) >= RUNNING_MAX:
            raise OttlaError(f"{RUNNING_MAX} statements run already: stop one, or wait")
        job = Job(text, user, cluster)
        self._jobs[job.id] = job
        for old in [name for name, each in self._jobs.items() if not each.is_running][: max(0, len(self._jobs) - KEPT_MAX)]:
            del self._jobs[old]
        job.task = asyncio.create_task(_run(job, self._command, dict(properties)))
        return job

    async def stop(self, job: Job) -> None:
        """End a job: first as Ctrl-C does, then by force."""
        job.is_stopped = True
        process = job.process
        if process is None or job.task is None:
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            done, _ = await asyncio.wait([job.task], timeout=STOP_S)
            if done:
                return

    async def close(self) -> None:
        """End all of them."""
        for job in self._jobs.values():
            job.is_stopped |= job.is_running
            if job.process is not None and job.is_running:
                with suppress(ProcessLookupError):
                    os.killpg(job.process.pid, signal.SIGKILL)
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def is_installed() -> bool:
    """Whether Spark is installed for Python."""
    return importlib.util.find_spec("pyspark") is not None


async def _run(job: Job, command: Sequence[str], properties: dict[str, str]) -> None:
    """The process of a job, until it ends. The file with its settings, which may hold passwords, is this user's alone."""
    descriptor, path = tempfile.mkstemp(prefix="ottla-sql-", suffix=".properties")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={_escaped(value)}\n" for name, value in properties.items())
        pipe = asyncio.subprocess.PIPE
        # A session of its own: Ctrl-C for the job reaches the JVM too, and none for the console reaches the job.
        job.process = await asyncio.create_subprocess_exec(
            *command, path, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, limit=ROW_BYTES_MAX
        )
        if job.is_stopped:  # before there was a process
            return
        assert job.process.stdin is not None
        job.process.stdin.write(job.text.encode())
        job.process.stdin.close()
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(_rows(job, job.process), _messages(job, job.process))
            job.code = await job.process.wait()
    except TimeoutError:
        job.messages.append(f"ended after {LIMIT_S / 3600:g} hours")
    except OSError as problem:
        job.messages.append(f"the process cannot be started: {problem.strerror}")
    finally:
        if job.process is not None and job.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(job.process.pid, signal.SIGKILL)
            await job.process.wait()
        job.ended_s = time.time()
        with suppress(OSError):
            os.unlink(path)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


async def _rows(job: Job, process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:  # longer than the limit, and dropped
            job.skipped += 1
            continue
        if not line:
            return
        job.take(line)


async def _messages(job: Job, process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    while True:
        try:
            line = await process.stderr.readline()
        except ValueError:
            continue
        if not line:
            return
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            job.messages.append(text[:2_000])
