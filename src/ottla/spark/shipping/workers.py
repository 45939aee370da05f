"""Looks at the Python workers of a cluster before a pipeline runs, and says in one sentence what is wrong with them.

A small job asks each task's worker for its Python, its pyarrow and its Ottla. The function that does so is pickled by value and
uses the standard library only, so that it runs where nothing else does.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import ottla
from ottla.errors import OttlaError
from ottla.spark.errors import reason_of

PATIENCE_S = 15.0
"""How long a cluster may give us no executor before we say that we wait for one."""
POLL_S = 0.2
REMEDY = "name a Python that all machines have with PYSPARK_PYTHON"
_MISMATCH = re.compile(r"worker has different version: (\d+\.\d+) than that in driver: (\d+\.\d+)")
_SAID = re.compile(r"Error from python worker:\s*\n\s*(.+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')

Notice = Callable[[str], None]


class WorkersUnfit(OttlaError):
    """The Python workers of a cluster cannot run our code."""


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker has."""

    host: str
    executable: str
    pyarrow: str | None
    """Its version; None if it is not there."""
    ottla: str | None
    """The version that is imported there; None if that failed."""
    problem: str
    """Why it failed."""
    installed: str | None
    """The version that is installed there, if any: a shipped one comes before it."""


def check_workers(spark: Any, *, is_remote: bool, notice: Notice = lambda text: None) -> None:
    """Raise `WorkersUnfit` if a worker cannot run our code; `notice` gets what is unusual but works."""
    tasks = 2
    if not is_remote:
        await_executor(spark, notice)
        tasks = max(tasks, spark.sparkContext.defaultParallelism)
    try:
        found = look(spark, tasks)
    except Exception as error:
        raise WorkersUnfit(failure(error)) from error
    for sentence in check_facts(found, is_remote=is_remote):
        notice(sentence)


def await_executor(spark: Any, notice: Notice) -> None:
    """Wait until the cluster has given us an executor. It may be busy, so there is no limit."""
    scala_context = spark.sparkContext._jsc.sc()
    begin_s, is_told = time.monotonic(), False
    while scala_context.getExecutorMemoryStatus().size() < 2:  # the driver counts as one
        if scala_context.isStopped():
            raise WorkersUnfit("the cluster has ended the session: its master has gone, or is no Spark master of this version")
        if not is_told and time.monotonic() - begin_s > PATIENCE_S:
            notice("The cluster has given us no executor yet: it has no free worker with enough cores and memory. Waiting.")
            is_told = True
        time.sleep(POLL_S)


def look(spark: Any, tasks: int) -> list[WorkerFacts]:
    """Ask the workers of some tasks."""
    from pyspark.sql.functions import udf

    # Without Arrow: a worker without pyarrow is to say so.
    ask = udf(_question(), "string", useArrow=False).asNondeterministic()
    rows = spark.range(0, tasks, 1, tasks).select(ask().alias("facts")).collect()
    return [WorkerFacts(**json.loads(text)) for text in sorted({row["facts"] for row in rows})]


def _question() -> Callable[[], str]:
    """A function inside a function: it is pickled by value, and needs no Ottla to be loaded."""

    def facts() -> str:
        import json
        import os
        import socket
        import sys
        from importlib import import_module, metadata

        found = {"host": socket.gethostname(), "executable": sys.executable, "problem": ""}
        found |= dict.fromkeys(("pyarrow", "ottla", "installed"))  # type: ignore[arg-type]
        try:
            found["pyarrow"] = import_module("pyarrow").__version__
        except ImportError:
            pass
        place = ""
        try:
            ours = import_module("ottla")
            for name in ("ottla.spark.clients", "ottla.records.columns", "crc32c", "cramjam"):
                import_module(name)
            found["ottla"], place = ours.__version__, os.path.dirname(os.path.dirname(str(ours.__file__)))
        except Exception as error:
            found["problem"] = f"{type(error).__name__}: {error}"
        elsewhere = [path for path in sys.path if path != place]
        for each in metadata.distributions(name="ottla", path=elsewhere):
            found["installed"] = each.version
        return json.dumps(found)

    return facts


def check_facts(found: Iterable[WorkerFacts], *, is_remote: bool = False) -> list[str]:
    """Raise `WorkersUnfit` for a worker that cannot run our code; returns what is unusual, in sentences."""
    notices = []
    for worker in found:
        owner = "the Spark Connect server" if is_remote else "a worker"
        where = f"the Python of {owner} ({worker.executable} on {worker.host})"
        if worker.pyarrow is None:
            raise WorkersUnfit(
                f"{where} has no pyarrow, which Spark needs there: pip install pyarrow 'pandas<3' there, or {REMEDY}"
            )
        if worker.ottla is None and is_remote:
            raise WorkersUnfit(
                f"{where} cannot load ottla ({worker.problem}), and Spark does not hand what a session ships to its streaming "
                f"queries: pip install 'ottla[spark]=={ottla.__version__}' there"
            )
        if worker.ottla is None:
            raise WorkersUnfit(
                f"{where} cannot load ottla ({worker.problem}): where its platform differs from this one, "
                f"pip install 'ottla[spark]=={ottla.__version__}' on the workers and set spark.ottla.ship to false"
            )
        if worker.ottla != ottla.__version__:
            raise WorkersUnfit(f"{where} has ottla {worker.ottla} and this one has {ottla.__version__}: they must be the same")
        if worker.installed not in (None, ottla.__version__):
            notices.append(f"{where} has ottla {worker.installed}; this run ships and uses {ottla.__version__}.")
    return notices


def failure(error: Exception) -> str:
    """A sentence for the pages that Spark writes when its workers do not start."""
    text = str(error)
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if found := _MISMATCH.search(text):
        return f"the workers have Python {found[1]} and this is Python {found[2]}: they must be the same; {REMEDY}"
    if found := _NO_PROGRAM.search(text):
        return f"the workers have no {found[1]}: install Python {ours} with pyarrow there, or {REMEDY}"
    said = _SAID.search(text)
    return f"the workers do not start: {said[1] if said else reason_of(error)}"
