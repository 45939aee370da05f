"""Ends all processes and removes all temporary folders of tests and benchmarks with them, even after a `kill -9`.

`keep()` (called by tests/conftest.py, by the benchmark and by the harness's servers; a second call does nothing)

- puts a mark into this process's environment, which all processes started from now on inherit, in any generation;
- creates one folder for all temporary files of this process and of the processes it starts;
- starts a keeper (`keeper.py`) that holds the other end of a pipe. When this process ends, the pipe ends, and the keeper kills
  the processes with the mark and removes the folder.

This does not depend on the thread that starts a child, or on what a child does with its descriptors. A child that gets an
environment without the mark is not ended. If the keeper was killed too (the machine was switched off), the next process that
calls `keep()` removes the folder: a living owner holds a lock on its folder.
"""

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

MARKS = "OTTLA_TESTS_KEPT"
"""The environment variable with the marks of this process and its ancestors, so that each keeper finds all descendants."""

FOLDER_PREFIX = "ottla-tests-"
PYTEST_FOLDERS = "PYTEST_DEBUG_TEMPROOT"
KEEPER = Path(__file__).with_name("keeper.py")
END_TIMEOUT_S = 30
FRESH_S = 60
"""A folder this young may have an owner that has not locked it yet."""

_keeper: "subprocess.Popen[bytes] | None" = None


def keep() -> None:
    """From now on, processes and temporary files of this process end with it."""
    global _keeper
    if _keeper is not None:
        return
    outer = Path(tempfile.gettempdir())
    remove_stale(outer)
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=outer)
    lock(folder)
    mark = uuid.uuid4().hex
    # pytest's folders of the last runs stay where developers look for them.
    os.environ.setdefault(PYTEST_FOLDERS, str(outer))
    unmarked = {name: value for name, value in os.environ.items() if name != MARKS}
    _keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", str(KEEPER), mark, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=unmarked,
        start_new_session=True,
    )
    os.environ[MARKS] = ":".join([*os.environ.get(MARKS, "").split(":"), mark]).strip(":")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    atexit.register(_end)


def _end() -> None:
    """Wait for the keeper at a normal exit, so that everything is removed when this process has ended."""
    assert _keeper is not None
    assert _keeper.stdin is not None
    _keeper.stdin.close()
    try:
        _keeper.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        pass


def lock(folder: str | Path) -> int | None:
    """Lock `folder` until this process ends; None if another process holds the lock."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_stale(outer: Path) -> None:
    """Remove the folders whose owners are gone."""
    for folder in outer.glob(f"{FOLDER_PREFIX}*"):
        try:
            held = lock(folder) if time.time() - folder.stat().st_mtime > FRESH_S else None
        except OSError:  # its keeper was quicker, or it is another user's
            continue
        if held is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)
