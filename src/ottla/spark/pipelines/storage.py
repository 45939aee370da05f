"""What a pipeline keeps between runs: `<storage>/ottla/` with checkpoints, tables, the log and a lock.

checkpoints/FLOW/     Spark's checkpoint of the flow: offsets, commits, state
tables/TABLE/         the files of a table or materialized view
counts/FLOW.json      what the checks of the flow have found, over all runs
forgotten             names of checkpoints that no flow has and that are to be left alone, one per line
spark.log             what Spark logged in the last run, with Java's traces
backfills/ID/         of a backfill: checkpoints, log and lock, and range.json with its offsets
lock                  held while a run lasts: two runs with the same checkpoints would write records twice

A storage that is not on this machine (`s3a://…`, `hdfs://…`, `viewfs://…`) is read and written with the Hadoop file systems of
the Spark session, if there is one in this process. It has no lock, and its log is beside the pipeline.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ottla import TopicPartition
from ottla.spark.pipelines.counts import Check, CountsFile
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import Spec
from ottla.spark.session import active_session

logger = logging.getLogger("ottla.spark.pipelines")
_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*: ")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Files(Protocol):
    """What is needed of a file system. Paths are those of `checkpoint` and `table`."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if it is not there."""

    def read(self, path: str) -> str | None:
        """The text of a file; None if it is not there."""

    def write(self, path: str, text: str) -> None:
        """Make or replace a file."""

    def delete(self, path: str) -> bool:
        """Delete a file or a folder with all that is in it; False if it was not there."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file or a folder; `new` is not there."""


class LocalFiles:
    """Folders of this machine."""

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, path: str) -> str | None:
        try:
            return Path(path).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, text: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        partial = f"{path}.partial"
        Path(partial).write_text(text, encoding="utf-8")
        os.replace(partial, path)

    def delete(self, path: str) -> bool:
        if os.path.isdir(path):
            shutil.rmtree(path)
            return True
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def rename(self, old: str, new: str) -> None:
        os.makedirs(os.path.dirname(new), exist_ok=True)
        os.rename(old, new)


class HadoopFiles:
    """Folders of the file systems that a Spark session of this process knows."""

    def __init__(self, spark: Any) -> None:
        self._java = spark._jvm
        self._settings = spark._jsparkSession.sessionState().newHadoopConf()

    def names(self, folder: str) -> list[str]:
        with _hadoop_errors(folder):
            files, path = self._at(folder)
            return sorted(each.getPath().getName() for each in files.listStatus(path)) if files.exists(path) else []

    def read(self, path: str) -> str | None:
        with _hadoop_errors(path):
            files, place = self._at(path)
            if not files.exists(place):
                return None
            stream = files.open(place)
            try:
                return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def write(self, path: str, text: str) -> None:
        with _hadoop_errors(path):
            files, place = self._at(path)
            stream = files.create(place, True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()

    def delete(self, path: str) -> bool:
        with _hadoop_errors(path):
            files, place = self._at(path)
            return bool(files.exists(place) and files.delete(place, True))

    def rename(self, old: str, new: str) -> None:
        with _hadoop_errors(old):
            files, place = self._at(old)
            _, target = self._at(new)
            files.mkdirs(target.getParent())
            if not files.rename(place, target):
                raise PipelineError(f"{old} could not be renamed to {new}: rename it with the tools of that storage")

    def _at(self, path: str) -> tuple[Any, Any]:
        place = self._java.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self._settings), place

    def default_is_local(self) -> bool:
        """Whether Spark takes a path without a scheme for one of this machine."""
        return str(self._settings.get("fs.defaultFS", "file:///")).startswith("file:")


@contextmanager
def _hadoop_errors(path: str) -> Iterator[None]:
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException  # what PySpark makes of some of Java's

    try:
        yield
    except (Py4JError, PySparkException) as error:
        cause = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        first = str(cause).strip().partition("\n")[0]
        raise PipelineError(f"{path} cannot be reached: {_CLASS.sub('', first)}") from None


def files_of(spec: Spec) -> Files | None:
    """How the storage is read and written; None if only Spark can: it is elsewhere, and this process has no session for it."""
    session = _session()
    is_local = spec.local_state is not None
    if session is None:
        return LocalFiles() if is_local else None
    if not hasattr(session, "_jvm"):
        # A path is one of the Connect server's machine.
        return LocalFiles() if is_local and session.client.host in LOOPBACK else None
    found = HadoopFiles(session)
    return LocalFiles() if is_local and found.default_is_local() else found


def _session() -> Any:
    import sys

    if "pyspark.sql" not in sys.modules:
        return None  # loading it takes a second, and there is none

    return active_session()


def needed(spec: Spec, what: str) -> Files:
    """The storage, or a `PipelineError` that begins with `what`."""
    files = files_of(spec)
    if files is None:
        raise PipelineError(
            f"{what}: the storage {spec.state} is not on this machine, and Spark Connect gives no way to it; use the tools of "
            "that storage, or run it without --remote"
        )
    return files


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
    files = needed(spec, "--reset cannot delete checkpoints")
    files.delete(f"{spec.state}/forgotten")
    files.delete(f"{spec.state}/counts")
    found = [files.delete(f"{spec.state}/{name}") for name in ("checkpoints", "tables")]
    return any(found)


def add_counts(
    spec: Spec, flow: str, query: str, batch: int, found: list[Check], began: set[tuple[str, str]] | None = None
) -> list[Check]:
    """Add what the checks of a batch have found; returns that, with fields that are null and were not before (`began`).

    Counts inform: a disk that is full does not stop the run for them.
    """
    found = list(found)
    if (files := files_of(spec)) is not None:
        try:
            counts = CountsFile(files.read(_counts_file(spec, flow)))
            if (text := counts.added(query, batch, found, set() if began is None else began)) is not None:
                files.write(_counts_file(spec, flow), text)
        except (OSError, PipelineError) as error:
            logger.warning("the counts of the flow %s were not stored: %s", flow, error)
    return found


def counts_of(spec: Spec, flow: str) -> list[Check]:
    """What the checks of a flow have found, over all runs."""
    files = files_of(spec)
    return [] if files is None else list(CountsFile(files.read(_counts_file(spec, flow))).totals.values())


def _counts_file(spec: Spec, flow: str) -> str:
    return f"{spec.home}/counts/{flow}.json"


def unowned_checkpoints(spec: Spec, flows: Collection[str]) -> list[str]:
    """The names of checkpoints that have batches and that none of the flows has, without those to be left alone.

    A flow that comes back is no longer to be left alone. None are found where the storage cannot be seen: ask `files_of` first.
    """
    files = files_of(spec)
    if files is None:
        return []
    left = forgotten(spec)
    if left & set(flows):
        left -= set(flows)
        _write_forgotten(spec, files, left)
    candidates = [each for each in files.names(f"{spec.state}/checkpoints") if each not in flows and each not in left]
    return [each for each in candidates if _last_batch(files, f"{spec.state}/checkpoints/{each}/offsets") >= 0]


def forgotten(spec: Spec) -> set[str]:
    """The names of checkpoints that are to be left alone."""
    files = files_of(spec)
    return set() if files is None else set((files.read(f"{spec.state}/forgotten") or "").splitlines())


def forget(spec: Spec, name: str) -> None:
    """Leave a checkpoint alone that no flow has. Nothing is deleted: a flow of this name continues with it."""
    _write_forgotten(spec, needed(spec, f"--forget {name} cannot be noted"), forgotten(spec) | {name})


def _write_forgotten(spec: Spec, files: Files, names: set[str]) -> None:
    files.write(f"{spec.state}/forgotten", "".join(f"{name}\n" for name in sorted(names)))


def rename_checkpoint(spec: Spec, old: str, new: str, target: str) -> bool:
    """Give a flow's checkpoint to the flow that it is called now; False if that was done before, or there is nothing to give.

    `target` is what the flow writes to. The checkpoint has the query's id, by which exactly-once sinks know what was written.
    """
    files = needed(spec, f"the checkpoint of {old} cannot be renamed")
    before, after = (f"{spec.state}/checkpoints/{each}" for each in (old, new))
    if _last_batch(files, f"{before}/offsets") < 0:
        return False
    if _last_batch(files, f"{after}/offsets") >= 0:
        raise PipelineError(
            f"the flow {new} has a checkpoint of its own, so it cannot take that of {old}: delete one of them with --reset "
            f"{old} or --reset {new}, or leave the old one with --forget {old}"
        )
    if target == new and old in files.names(f"{spec.state}/tables"):
        raise PipelineError(
            f"{old} was a table, whose files cannot be renamed: give it its old name, or read all again with --reset {old}"
        )
    files.delete(after)
    files.rename(before, after)
    if f"{old}.json" in files.names(f"{spec.state}/counts"):
        files.delete(_counts_file(spec, new))
        files.rename(_counts_file(spec, old), _counts_file(spec, new))
    return True


def reset_flow(spec: Spec, flow: str, table_name: str | None = None) -> bool:
    """Delete the checkpoint of one flow, and the table that it fills; False if there was none."""
    files = needed(spec, f"--reset cannot delete the checkpoint of {flow}")
    files.delete(_counts_file(spec, flow))
    folders = [f"{spec.state}/checkpoints/{flow}", *([table(spec, table_name)] if table_name else [])]
    found = [files.delete(each) for each in folders]
    return any(found)


def check_batches(spec: Spec, flow: str, name: str) -> None:
    """A `PipelineError` if a table of files has batches that its flow's checkpoint does not know.

    The table lists the batches that it has by number, and Spark leaves out the rows of a batch whose number is there. So a flow
    that starts to count from 0 again would lose rows without an error.
    """
    files = files_of(spec)
    if files is None:
        return
    written = _last_batch(files, f"{table(spec, name)}/_spark_metadata")
    planned = _last_batch(files, f"{checkpoint(spec, flow)}/offsets")
    if written > planned:
        has = "none" if planned < 0 else f"up to {planned}"
        raise PipelineError(
            f"the table {name} has batches up to {written}, and the flow {flow} {has}: Spark would take its next batches for "
            f"written and lose their rows. If the flow was renamed, say so with --renamed OLD={flow}; else start over: --reset"
        )


def check_columns(spec: Spec, flow: str, name: str, kind: str, frame: Any, spark: Any) -> None:
    """A `PipelineError` if a table of files has rows whose columns have other types than those that its flow writes now.

    Spark would write files of both types, and no query could read the table any more. New columns and missing ones are null.
    """
    files = files_of(spec)
    if files is None or kind not in ("parquet", "orc") or _last_batch(files, f"{table(spec, name)}/_spark_metadata") < 0:
        return
    try:
        before = spark.read.format(kind).load(table(spec, name)).schema
    except Exception:
        return  # batches without rows have written no files
    now = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    for each in before.fields:
        was = each.dataType.simpleString()
        if each.name in now and now[each.name] != was:
            raise PipelineError(
                f"the flow {flow} cannot continue: the column {each.name} of the table {name} is {was}, and is "
                f"{now[each.name]} now. Take the change back, cast it to {was}, or compute the table again with --reset {flow}"
            )


def position_batch(spec: Spec, flow: str) -> int:
    """The last batch that a flow has planned; -1 if it has not run."""
    files = files_of(spec)
    return -1 if files is None else _last_batch(files, f"{checkpoint(spec, flow)}/offsets")


def _last_batch(files: Files, folder: str) -> int:
    """The last batch that Spark has a file for: `12`, or `9.compact`; -1 if there is none."""
    numbers = [name.removesuffix(".compact") for name in files.names(folder)]
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


@dataclass(frozen=True)
class Position:
    """How far a flow has come."""

    batch: int
    offsets: tuple[dict[str, Any], ...]
    """The end offsets of each source, as the source writes them."""
    is_batch_open: bool
    """Whether a later batch was begun and not finished: the next run writes it again."""

    def partitions(self) -> dict[TopicPartition, int]:
        """The offsets of topics; where two sources read one partition, the smaller one."""
        found: dict[TopicPartition, int] = {}
        for source in self.offsets:
            for topic, parts in source.items():
                for partition, offset in parts.items() if isinstance(parts, dict) else ():
                    if partition.isdecimal() and isinstance(offset, int):
                        each = TopicPartition(topic, int(partition))
                        found[each] = min(offset, found.get(each, offset))
        return found

    def text(self) -> str:
        """`orders-0: 12, orders-1: 9`."""
        return ", ".join(f"{each}: {offset}" for each, offset in self.partitions().items()) or f"batch {self.batch}"


def position_of(spec: Spec, flow: str) -> Position | None:
    """The position of a flow; None if it has not run, or if the storage cannot be seen (`storage.files_of`)."""
    files, folder = files_of(spec), checkpoint(spec, flow)
    commits = [] if files is None else _numbers(files, f"{folder}/commits")
    if files is None or not commits:
        return None
    batch = commits[-1]
    offsets = _numbers(files, f"{folder}/offsets")
    lines = (files.read(f"{folder}/offsets/{batch}") or "").splitlines()[2:]
    return Position(batch, tuple(_parse(line) for line in lines), bool(offsets) and offsets[-1] > batch)


def _numbers(files: Files, folder: str) -> list[int]:
    return sorted(int(name) for name in files.names(folder) if name.isdecimal())


def _parse(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
