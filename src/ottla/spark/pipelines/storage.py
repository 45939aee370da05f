"""What a pipeline keeps between runs: `<storage>/ottla/` with checkpoints, tables, the log and a lock.

checkpoints/FLOW/     Spark's checkpoint of the flow: offsets, commits, state
tables/TABLE/         the files of a table or materialized view
counts/FLOW.json      what the checks of the flow have found, over all runs
forgotten             names of checkpoints that no flow has and that are to be left alone, one per line
spark.log             what Spark logged in the last run, with Java's traces
backfills/ID/         of a backfill: checkpoints, log and lock, and range.json with its offsets
lock                  held while a run lasts: two runs with the same checkpoints would write records twice
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.spark.pipelines.counts import Check, CountsFile
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import Spec

logger = logging.getLogger("ottla.spark.pipelines")


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
    (state / "forgotten").unlink(missing_ok=True)
    shutil.rmtree(state / "counts", ignore_errors=True)
    for name in ("checkpoints", "tables"):
        if (state / name).exists():
            shutil.rmtree(state / name)
            found = True
    return found


def add_counts(spec: Spec, flow: str, query: str, batch: int, found: list[Check]) -> None:
    """Add what the checks of a batch have found. Counts inform: a disk that is full does not stop the run for them."""
    if spec.local_state is not None:
        try:
            CountsFile(spec.local_state / "counts" / f"{flow}.json").add(query, batch, found)
        except OSError as error:
            logger.warning("the counts of the flow %s were not stored: %s", flow, error)


def counts_of(spec: Spec, flow: str) -> list[Check]:
    """What the checks of a flow have found, over all runs."""
    if spec.local_state is None:
        return []
    return list(CountsFile(spec.local_state / "counts" / f"{flow}.json").totals.values())


def unowned_checkpoints(spec: Spec, flows: Collection[str]) -> list[str]:
    """The names of checkpoints that have batches and that none of the flows has, without those to be left alone.

    A flow that comes back is no longer to be left alone.
    """
    state = spec.local_state
    if state is None:
        return []
    left = forgotten(spec)
    if left & set(flows):
        left -= set(flows)
        _write_forgotten(state, left)
    found = sorted(path.name for path in (state / "checkpoints").glob("*") if _last_batch(path / "offsets") >= 0)
    return [name for name in found if name not in flows and name not in left]


def forgotten(spec: Spec) -> set[str]:
    """The names of checkpoints that are to be left alone."""
    try:
        return set((spec.local_state or Path()).joinpath("forgotten").read_text(encoding="utf-8").splitlines())
    except OSError:
        return set()


def forget(spec: Spec, name: str) -> None:
    """Leave a checkpoint alone that no flow has. Nothing is deleted: a flow of this name continues with it."""
    if spec.local_state is not None:
        _write_forgotten(spec.local_state, forgotten(spec) | {name})


def _write_forgotten(state: Path, names: set[str]) -> None:
    (state / "forgotten").write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


def rename_checkpoint(spec: Spec, old: str, new: str, target: str) -> bool:
    """Give a flow's checkpoint to the flow that it is called now; False if that was done before, or there is nothing to give.

    `target` is what the flow writes to. The checkpoint has the query's id, by which exactly-once sinks know what was written.
    """
    state = spec.local_state
    if state is None:
        raise PipelineError(f"the checkpoint of {old} is in {spec.state}, which is not on this machine: rename it there")
    before, after = state / "checkpoints" / old, state / "checkpoints" / new
    if _last_batch(before / "offsets") < 0:
        return False
    if _last_batch(after / "offsets") >= 0:
        raise PipelineError(
            f"the flow {new} has a checkpoint of its own, so it cannot take that of {old}: delete one of them with --reset "
            f"{old} or --reset {new}, or leave the old one with --forget {old}"
        )
    if target == new and (state / "tables" / old).exists():
        raise PipelineError(
            f"{old} was a table, whose files cannot be renamed: give it its old name, or read all again with --reset {old}"
        )
    if after.exists():
        shutil.rmtree(after)
    os.rename(before, after)
    if (counts := state / "counts" / f"{old}.json").exists():
        os.replace(counts, counts.with_name(f"{new}.json"))
    return True


def reset_flow(spec: Spec, flow: str, table_name: str | None = None) -> bool:
    """Delete the checkpoint of one flow, and the table that it fills; False if there was none."""
    state = spec.local_state
    if state is None:
        raise PipelineError(f"--reset cannot delete {spec.state}, which is not on this machine: delete it with its own tools")
    found = False
    (state / "counts" / f"{flow}.json").unlink(missing_ok=True)
    for folder in [state / "checkpoints" / flow, *([state / "tables" / table_name] if table_name else [])]:
        if folder.exists():
            shutil.rmtree(folder)
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
            f"written and lose their rows. If the flow was renamed, say so with --renamed OLD={flow}; else start over: --reset"
        )


def position_batch(spec: Spec, flow: str) -> int:
    """The last batch that a flow has planned; -1 if it has not run."""
    return -1 if spec.local_state is None else _last_batch(spec.local_state / "checkpoints" / flow / "offsets")


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
