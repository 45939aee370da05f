"""What the process has used, from the operating system: /proc where there is one, else what POSIX offers."""

import os
import resource
import sys

from ottla.env.usage import ProcessUsage

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_usage() -> ProcessUsage:
    """The numbers of this process, now."""
    times = os.times()
    return ProcessUsage(times.user + times.system, _resident_bytes(), _open_files())


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:  # no /proc: the most it ever was
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return -1
