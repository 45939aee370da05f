"""Stops a process at a step of the sink's protocol. Every Python with this folder on its PYTHONPATH loads it when it starts.

A test names a folder in OTTLA_TEST_STEPS and writes the name of a step into the file `stop-at` there. The first process that
reaches the step renames the file to `reached`, writes its process id to it, and waits to be killed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

FOLDER = os.environ.get("OTTLA_TEST_STEPS")


def stop(step: str) -> None:
    assert FOLDER is not None
    folder = Path(FOLDER)
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


class Finder:
    """Listens once the module that tells the steps is imported: a worker of Spark must not import it earlier than usual."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "ottla.spark.sink.steps" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_listen(module: ModuleType) -> None:
            execute(module)
            module.listener = stop  # type: ignore[attr-defined]

        spec.loader.exec_module = execute_and_listen  # type: ignore[method-assign]  # a loader serves one module
        return spec


if FOLDER:
    sys.meta_path.insert(0, Finder())
