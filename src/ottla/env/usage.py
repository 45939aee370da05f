"""The contract for this process's resource usage. Cheap enough to be read at every scrape of the metrics."""

from __future__ import annotations

from typing import NamedTuple


class ProcessUsage(NamedTuple):
    """Numbers of the whole process, which may run more than one node."""

    cpu_s: float
    """Seconds of processor time, in user and system mode."""
    resident_bytes: int
    """Resident memory (RSS)."""
    open_files: int
    """Open descriptors, files and sockets; -1 if unknown."""
    disk_read_bytes: int = -1
    """Bytes that the process made the disks read since it started; -1 if unknown."""
    disk_written_bytes: int = -1
