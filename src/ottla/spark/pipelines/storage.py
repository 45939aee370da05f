"""What a pipeline keeps between runs: `<storage>/ottla/` with checkpoints, tables, the log and a lock.

checkpoints/FLOW/     Spark's checkpoint of the flow: offsets, commits, state
tables/TABLE/         the files of a table or materialized view
spark.log             what Spark logged in the last run, with Java's traces
backfills/ID/         of a backfill: checkpoints, log and lock, and range.json with its offsets
lock                  held while a run lasts: two runs with the same checkpoints would write records twice
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import Spec


def checkpoint(spec: Spec, flow: str) -> str:
    """The folder of a flow's checkpoint."""
    return f"{spec.home}/checkpoints/{flow}"


def table(spec: Spec, name: str) -> str:
    """The folder of a table's files."""
    return f"{spec.state}/tables/{name}"


def log_file(spec: Spec) -> Path:
    """Where Spark's log goes. If the storage is not on this machine, the log is beside the pipeline."""
    return (spec.local_home or spec.folder / ".ottla") / "spark.log"


def begin_log(spec: Spec) -> Path:
    """A new, empty log; the one of the run before is kept as `spark.log.1`."""
    path = log_file(spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        os.replace(path, path.with_name("spark.log.1"))
    path.touch()
    return path


def reset(spec: Spec) -> bool:
    """Delete checkpoints, state and tables; False if there were none."""
    state = spec.local_state
    if state is None:
        raise PipelineError(f"--reset cannot delete {spec.state}, which is not on this machine: delete it with its own tools")
    found = False
    for name in ("checkpoints", "tables"):
        if (state / name).exists():
            shutil.rmtree(state / name)
            found = True
    return found


def check_batches(spec: Spec, flow: str, name: str) -> None:
    """A `PipelineError` if a table of files has batches that its flow's checkpoint does not know.

    The table lists the batches that it has by number, and Spark leaves out the rows of a batch whose number is there. So a flow
    that starts to count from 0 again would lose rows without an error.
    """
    state = spec.local_state
    if state is None:
        return
    written = _last_batch(state / "tables" / name / "_spark_metadata")
    planned = _last_batch(state / "checkpoints" / flow / "offsets")
    if written > planned:
        has = "none" if planned < 0 else f"up to {planned}"
        raise PipelineError(
            f"the table {name} has batches up to {written}, and the flow {flow} {has}: Spark would take its next batches for "
            "written and lose their rows. If the flow was renamed, give it its old name; else start over with --reset"
        )


def _last_batch(folder: Path) -> int:
    """The last batch that Spark has a file for: `12`, or `9.compact`; -1 if there is none."""
    numbers = [path.name.removesuffix(".compact") for path in folder.glob("*")]
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)


def make_folder(path: str) -> None:
    """Make a folder of this machine; others are made by Spark when it first writes."""
    if path.startswith("/"):
        os.makedirs(path, exist_ok=True)


@contextmanager
def locked(spec: Spec) -> Iterator[None]:
    """Hold the pipeline's lock; a `PipelineError` if another run has it."""
    state = spec.local_home
    if state is None:
        yield
        return
    state.mkdir(parents=True, exist_ok=True)
    with open(state / "lock", "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            raise PipelineError(
                f"the pipeline {spec.name} is already being run by process {holder or 'unknown'}: stop it first; "
                "two runs would write records twice"
            ) from None
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield
