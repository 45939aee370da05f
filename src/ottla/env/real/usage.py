"""The process's resource usage, from /proc where it exists, else from POSIX calls."""

import os
import resource
import sys

from ottla.env.usage import ProcessUsage

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_usage() -> ProcessUsage:
    """The current numbers of this process."""
    times = os.times()
    return ProcessUsage(times.user + times.system, _resident_bytes(), _open_files())


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
