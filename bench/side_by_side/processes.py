"""CPU seconds and resident memory of a server process and all helpers it started.

On Linux from /proc. Elsewhere (macOS) from `ps`, which does not know the CPU time of helpers that have ended.
"""

import os
import platform
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

ON_LINUX = platform.system() == "Linux"
SAMPLE_S = 0.1


def cpu_seconds(pid: int) -> float:
    """User and system time of `pid`, its running descendants and the children it has waited for."""
    if ON_LINUX:
        return sum(_linux_cpu_seconds(each) for each in _linux_tree(pid))
    return sum(cpu for cpu, _ in _ps_tree(pid))


def memory_mb(pid: int) -> float:
    """Resident memory of `pid` and its running descendants, in MB of 2^20 bytes."""
    if ON_LINUX:
        return sum(_linux_status_kb(each, "VmRSS") for each in _linux_tree(pid)) / 1024
    return sum(rss_kb for _, rss_kb in _ps_tree(pid)) / 1024


class MemoryPeak:
    """The peak of the total memory of `pid` and its helpers, sampled while the `with` block runs."""

    def __init__(self, pid: int) -> None:
        self.peak_mb = 0.0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "MemoryPeak":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        interval_s = SAMPLE_S if ON_LINUX else 10 * SAMPLE_S
        while True:
            self.peak_mb = max(self.peak_mb, memory_mb(self._pid))
            if self._over.wait(interval_s):
                return


def parse_stat_seconds(stat: str, ticks_per_second: int) -> float:
    """utime, stime, cutime and cstime of a /proc/PID/stat line. The process name in it may contain brackets and spaces."""
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / ticks_per_second


def parse_ps_time(text: str) -> float:
    """Seconds of what `ps -o time` prints: [[days-]hours:]minutes:seconds, with or without a fraction."""
    days, dash, rest = text.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds + (int(days) * 86_400 if dash else 0)


def parse_ps_tree(table: str, root: int) -> Iterator[tuple[float, int]]:
    """(CPU seconds, resident KB) of `root` and its descendants in the lines `pid ppid time rss`."""
    rows = [line.split() for line in table.splitlines() if line.strip()]
    family = {root}
    # A child may be listed before its parent, so it takes as many passes as there are generations.
    while found := {int(pid) for pid, parent, *_ in rows if int(parent) in family} - family:
        family |= found
    for pid, _, time, rss in rows:
        if int(pid) in family:
            yield parse_ps_time(time), int(rss)


def _ps_tree(pid: int) -> Iterator[tuple[float, int]]:
    command = ["ps", "-axo", "pid=,ppid=,time=,rss="]
    return parse_ps_tree(subprocess.run(command, capture_output=True, text=True, check=True).stdout, pid)


def _linux_tree(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in children.read_text().split():
                yield from _linux_tree(int(child))
        except OSError:  # the thread has ended
            continue


def _linux_cpu_seconds(pid: int) -> float:
    try:
        return parse_stat_seconds(Path(f"/proc/{pid}/stat").read_text(), os.sysconf("SC_CLK_TCK"))
    except OSError:
        return 0.0


def _linux_status_kb(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
