"""The sink's work without Spark: the tasks of a batch and its commit, in this process or in one that is killed at a step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla import Admin, Consumer
from ottla.spark.sink import steps
from ottla.spark.sink.commit import Driver, open_transactions
from ottla.spark.sink.options import SinkOptions, sink_options
from ottla.spark.sink.protocol import TaskResult
from ottla.spark.sink.writers import Job, write_in_transaction

HANG_S = 180
ROWS = 5
TASKS = 3
PARTITIONS = 2
TASK_STEPS = ("task:started", "task:initialized", "task:sent", "task:flushed", "task:detached")
DRIVER_STEPS = (
    "commit:called",
    "commit:fenced",
    "commit:kept",
    "commit:checked",
    "decision:sent",
    "decision:written",
    "ending:first",
    "ending:all",
    "finish:written",
    "sweep:done",
)
STEPS = (*TASK_STEPS, *DRIVER_STEPS)
STOPPING = str(Path(__file__).with_name("stopping"))
"""A folder for PYTHONPATH: processes that have it stop at a step."""
VARIABLE = "OTTLA_TEST_STEPS"


def stopping_at(folder: Path) -> dict[str, str]:
    """The environment of a process that looks into `folder` for the step to stop at."""
    return os.environ | {VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join([STOPPING, *sys.path])}


class Died(BaseException):
    """The driver's process ends here."""


def die_at(step: str, monkeypatch: pytest.MonkeyPatch, options: SinkOptions, query: str) -> None:
    """Run batch 0 up to a step of the driver, in this process."""

    def die(name: str) -> None:
        if name == step:
            raise Died

    results = run_tasks(options, query, "run1", 0)
    with monkeypatch.context() as patched:
        patched.setattr(steps, "listener", die)
        with pytest.raises(Died):
            Driver(options).commit(results, 0)


def options_for(bootstrap: str, topic: str, **more: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "exactlyOnce": "true", **more}
    return sink_options(given, is_streaming=True)


def rows_of(batch: int, task: int) -> list[bytes]:
    return [b"%d-%d-%d" % (batch, task, number) for number in range(ROWS)]


def run_tasks(options: SinkOptions, query: str, run: str, batch: int, tasks: int = TASKS) -> list[TaskResult]:
    results = []
    for task in range(tasks):
        values = rows_of(batch, task)
        rows = pa.record_batch({"key": [b"k%d" % task] * ROWS, "value": values})
        results.append(write_in_transaction(options, Job(query, run, batch, task), iter([rows])))
    return results


def run_batch(options: SinkOptions, query: str, run: str, batch: int) -> list[TaskResult]:
    results = run_tasks(options, query, run, batch)
    Driver(options).commit(results, batch)
    return results


def open_ids(admin: Admin, query: str) -> list[str]:
    """The transactional ids under which a query has something open."""
    return [each.transactional_id for each in open_transactions(admin, query)]


def committed(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> list[bytes]:
    """Every value that a read_committed reader sees, up to the end of the log: it waits for open transactions."""
    return [value for _, value in committed_pairs(bootstrap, topic, partitions)]


def committed_pairs(bootstrap: str, topic: str, partitions: int) -> list[tuple[bytes | None, bytes]]:
    """Key and value of every record that a read_committed reader sees, in the order of each partition."""
    places = [(topic, number) for number in range(partitions)]
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    with Consumer(bootstrap, **settings) as plain:
        ends = plain.end_offsets(*places)
    found = []
    with Consumer(bootstrap, isolation_level="read_committed", **settings) as consumer:
        consumer.assign(*places)
        deadline_s = time.monotonic() + HANG_S
        while any(consumer.position(place) < end for place, end in ends.items()):
            assert time.monotonic() < deadline_s, "a transaction stays open"
            found += [(record.key, record.value) for record in consumer.poll(timeout=0.5)]
    return found


def visible(bootstrap: str, topic: str) -> list[bytes]:
    """Every value that a read_committed reader sees now; what is behind an open transaction is not waited for."""
    places = [(topic, number) for number in range(PARTITIONS)]
    with Consumer(
        bootstrap, isolation_level="read_committed", auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        ends = consumer.end_offsets(*places)
        consumer.assign(*places)
        found: list[bytes] = []
        while any(consumer.position(place) < end for place, end in ends.items()):
            found += [record.value for record in consumer.poll(timeout=0.5)]
    return found


class KilledBatch:
    """A process that runs one batch and stops at a step, where it is killed."""

    def __init__(self, folder: Path, step: str, bootstrap: str, topic: str, query: str, run: str, batch: int) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "stop-at").write_text(step, encoding="utf-8")
        (folder / "reached").unlink(missing_ok=True)
        arguments = json.dumps([bootstrap, topic, query, run, batch])
        self._process = subprocess.Popen([sys.executable, __file__, arguments], env=stopping_at(folder))
        await_file(folder / "reached", self._process)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(HANG_S)


def await_file(path: Path, process: subprocess.Popen[Any] | None = None) -> str:
    deadline_s = time.monotonic() + HANG_S
    while not path.exists():
        assert process is None or process.poll() is None, f"ended with {process and process.returncode} before {path.name}"
        assert time.monotonic() < deadline_s, f"{path} did not appear"
        time.sleep(0.01)
    return path.read_text(encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    bootstrap, topic, query, run, batch = json.loads(arguments[0])
    run_batch(options_for(bootstrap, topic), query, run, batch)


if __name__ == "__main__":
    main(sys.argv[1:])
