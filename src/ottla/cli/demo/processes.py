"""The processes that the demo starts, kills and starts again: a node and a pipeline on Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from ottla.errors import OttlaError

OTTLA = [sys.executable, "-m", "ottla.cli.main"]
STOP_WITHIN_S = 60


class DemoFailed(OttlaError):
    """A step did not do what it should."""


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """A command in a process group of its own, so that a kill also ends what it has started, such as Spark's Java process."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self._arguments = arguments
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def start(self, *, reads_output: bool = False) -> str:
        """Start it; returns the first line of its output if that is wanted."""
        with open(self._log, "a", encoding="utf-8") as log:
            out = subprocess.PIPE if reads_output else log
            self._process = subprocess.Popen(
                [*OTTLA, *self._arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=log, text=True, start_new_session=True
            )
        return self._process.stdout.readline() if self._process.stdout is not None else ""

    def check(self) -> None:
        """Raise if it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            command = " ".join(self._arguments[:2])
            raise DemoFailed(f"`ottla {command}` ended with {self._process.returncode}. Its last lines: {self.last_lines()}")

    def kill(self) -> None:
        """kill -9, for the whole group."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it stop in good order; kill it if it does not."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _signal_group(process.pid, number)
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            pass
        _signal_group(process.pid, signal.SIGKILL)  # also what the command has left behind
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def last_lines(self, count: int = 3) -> str:
        """The end of what it has logged."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " / ".join(line.strip() for line in lines[-count:]) or "none"


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


class Node(Process):
    """A node whose address stays the same when it is started again."""

    def __init__(self, data: Path, log: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        super().__init__(["up", "--port", str(self.port), "--data", str(data), "--json"], log)

    def start_and_wait(self) -> None:
        """Start it; returns when it answers."""
        line = self.start(reads_output=True)
        if not line:
            raise DemoFailed(f"the node did not start: {self.last_lines()}")
        assert json.loads(line)["bootstrap_servers"] == self.address
