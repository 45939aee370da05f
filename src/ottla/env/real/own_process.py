"""This process as the operating system sees it: its resource usage, its name, and what happens when its parent ends.

The usage is from /proc where it exists, else from POSIX calls.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress

from ottla.env.usage import ProcessUsage

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_usage() -> ProcessUsage:
    """The current numbers of this process."""
    times = os.times()
    return ProcessUsage(times.user + times.system, _resident_bytes(), _open_files(), *_disk_bytes())


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:  # no /proc: the peak is all there is
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return -1


def _disk_bytes() -> tuple[int, int]:
    """Bytes read and written, as Linux counts them for a process; (-1, -1) elsewhere, or where it is not allowed to know."""
    try:
        with open("/proc/self/io", "rb", buffering=0) as file:
            fields = dict(line.split(b": ") for line in file.read().splitlines())
        return int(fields[b"read_bytes"]), int(fields[b"write_bytes"])
    except (OSError, KeyError, ValueError):
        return -1, -1


_PR_SET_PDEATHSIG = 1


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` show: at most 15 bytes of it. Only on Linux; elsewhere it stays as it was."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as comm:
        comm.write(name)


def end_with_parent(number: signal.Signals) -> None:
    """Send this process the signal when its parent has ended. Only on Linux."""
    if sys.platform != "linux":
        return
    import ctypes  # late: few commands need it

    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:  # it has ended in between
        os.kill(os.getpid(), number)
