"""The processes that the demo starts, kills and starts again: a node and a pipeline on Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.env.real import guard
from ottla.env.real.own_process import end_with_parent
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


class Guard:
    """Ends the demo's processes, and removes its folder, if the demo is killed: a process of its own (`env/real/guard.py`)."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        self._tell(f"folder {folder}")

    def add(self, group: int) -> None:
        self._tell(f"group {group}")

    def drop(self, group: int) -> None:
        self._tell(f"drop {group}")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()


_guards: list[Guard] = []


@contextmanager
def demo_folder() -> Iterator[Path]:
    """A temporary folder. Whatever ends the demo in the block, its processes end and the folder goes.

    SIGTERM and SIGHUP end it like Ctrl-C. When `make` is killed, the demo gets a SIGTERM.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    if "MAKELEVEL" in os.environ:
        end_with_parent(signal.SIGTERM)
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as folder:
        _guards.append(Guard(Path(folder)))
        try:
            yield Path(folder)
        finally:
            _guards.pop().close()


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


def watch_group(group: int) -> None:
    """From now on this process group ends with the demo."""
    for each in _guards:
        each.add(group)


def forget_group(group: int) -> None:
    """The group has ended: its number may soon be another's."""
    for each in _guards:
        each.drop(group)


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
        watch_group(self._process.pid)
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
        forget_group(process.pid)
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
