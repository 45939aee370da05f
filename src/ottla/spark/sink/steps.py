"""The named steps of the exactly-once protocol. Tests stop a process at one of them, to kill it there.

`reached(step)` does nothing unless the environment names a folder in OTTLA_SINK_STEPS. A test writes the name of a step into
the file `stop-at` there. The first process that reaches the step renames the file to `reached`, writes its process id to
it, and waits to be killed.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

VARIABLE = "OTTLA_SINK_STEPS"

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


def reached(step: str) -> None:
    """Stop here if a test asks for it."""
    folder = os.environ.get(VARIABLE)
    if folder:
        _stop(Path(folder), step)


def _stop(folder: Path, step: str) -> None:
    assert step in STEPS, step
    try:
        if (folder / "stop-at").read_text(encoding="utf-8") != step:
            return
        claim = folder / f"claim-{os.getpid()}"
        (folder / "stop-at").rename(claim)  # only one process succeeds
    except FileNotFoundError:
        return
    claim.write_text(f"{os.getpid()} {step}", encoding="utf-8")
    claim.rename(folder / "reached")
    threading.Event().wait()
