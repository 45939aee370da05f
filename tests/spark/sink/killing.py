"""Runs `pipeline.py`, kills its driver, its Python processes or its broker, and starts the driver again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.spark.sink.sink_work import HANG_S, committed_pairs, open_ids, stopping_at

from ottla import Admin, Consumer, Producer

PROGRAM = Path(__file__).with_name("pipeline.py")
PARTITIONS = 2
KEYS = 7
RECORDS = 30


class Pipeline:
    """A pipeline that survives what the test does to it. `bootstrap` stays the same when the broker restarts.

    `two_phase` is the sink's option twoPhaseCommit.
    """

    def __init__(self, bootstrap: str, folder: Path, two_phase: str = "auto") -> None:
        self.bootstrap = bootstrap
        self._two_phase = two_phase
        self.folder = folder
        self.sent = 0
        self.kills: list[str] = []
        self._steps = folder / "steps"
        self._steps.mkdir(parents=True)
        self._process: subprocess.Popen[Any] | None = None
        self._left: list[int] = []
        """Handles of processes of drivers that were killed. Their ids may belong to others by now."""
        with Admin(bootstrap) as admin:
            admin.create_topics({"input": PARTITIONS, "output": PARTITIONS}).raise_first()

    def __enter__(self) -> Pipeline:
        self.ensure_running()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill_driver()
        end(self._left)

    def ensure_running(self) -> None:
        """Start the driver if it was killed."""
        if self._process is not None and self._process.poll() is None:
            return
        command = [sys.executable, str(PROGRAM), self.bootstrap, "input", "output", str(self.folder), self._two_phase]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, env=stopping_at(self._steps), stdout=log, stderr=subprocess.STDOUT)

    def feed(self) -> None:
        """Send the next records."""
        with Producer(self.bootstrap) as producer:
            numbers = range(self.sent, self.sent + RECORDS)
            keys = [b"k%d" % (number % KEYS) for number in numbers]
            producer.send_many("input", [b"%d" % number for number in numbers], keys=keys).wait(HANG_S)
        self.sent += RECORDS

    # Kills

    def arm(self, step: str) -> None:
        """Let the first process that reaches a step wait there."""
        (self._steps / "reached").unlink(missing_ok=True)
        (self._steps / "stop-at").write_text(step, encoding="utf-8")

    def await_step(self) -> int:
        """Wait until a process has reached the step; returns its id."""
        reached = self._steps / "reached"
        self.wait_for(reached.exists, f"the step in {self._steps}")
        return int(reached.read_text(encoding="utf-8").split()[0])

    def kill_driver(self, stopped: int | None = None) -> None:
        """Kill the driver and its JVM, and the process that waits at a step. Other Python workers end by themselves, later."""
        assert self._process is not None
        running = [] if self._process.poll() is not None else [self._process.pid]
        family = {each for pid in running for each in descendants(pid)}
        self._left += handles(family)
        java = {each for each in family if "java" in name_of(each)}
        for each in (*java, *running, *([] if stopped is None else [stopped])):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._process.wait(HANG_S)

    def kill_process(self, pid: int) -> None:
        """Kill one Python process of the pipeline."""
        os.kill(pid, signal.SIGKILL)

    # Results

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = 2 * HANG_S) -> None:
        """Wait until something is so, with the driver running."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            self.ensure_running()
            failures = self.folder / "failures"
            text = failures.read_text(encoding="utf-8")[-3000:] if failures.exists() else ""
            assert time.monotonic() < deadline_s, f"waited for {what}; kills: {self.kills}; failures:\n{text}"
            time.sleep(0.05)

    def await_results(self, timeout_s: float = 2 * HANG_S) -> None:
        """Wait until read_committed readers could have seen every result."""

        def are_all_there() -> bool:
            places = [("output", number) for number in range(PARTITIONS)]
            with Consumer(self.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
                ends = consumer.end_offsets(*places)
                consumer.assign(*places)
                count = 0
                while any(consumer.position(place) < end for place, end in ends.items()):
                    count += len(consumer.poll(timeout=0.5))
            return count >= self.sent

        self.wait_for(are_all_there, f"{self.sent} results", timeout_s)

    def check(self) -> None:
        """Every input has one result, each key's in order; then stop the query, and nothing is left open."""
        by_key: dict[bytes | None, list[int]] = {}
        for key, value in committed_pairs(self.bootstrap, "output", PARTITIONS):
            by_key.setdefault(key, []).append(int(value.removeprefix(b"r")))
        expected = {b"k%d" % key: [number for number in range(self.sent) if number % KEYS == key] for key in range(KEYS)}
        assert by_key == expected, f"after {self.kills}"
        (self.folder / "stop").touch()
        assert self._process is not None
        self._process.wait(HANG_S)
        query = (self.folder / "query").read_text(encoding="utf-8")
        with Admin(self.bootstrap) as admin:
            assert open_ids(admin, query) == []


def descendants(pid: int) -> set[int]:
    """The processes below one, as of now."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def handles(pids: Iterable[int]) -> list[int]:
    """Handles of those that run. Unlike an id, a handle never comes to mean another process."""
    found = []
    for each in pids:
        with suppress(ProcessLookupError):
            found.append(os.pidfd_open(each))
    return found


def end(left: list[int]) -> None:
    """Kill the processes that still run, and give up their handles."""
    while left:
        handle = left.pop()
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)


def name_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8")
    return ""
