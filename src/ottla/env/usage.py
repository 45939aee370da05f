"""What this process has used of the machine: the contract. Cheap enough to be asked at every look at the metrics."""

from __future__ import annotations

from typing import NamedTuple


class ProcessUsage(NamedTuple):
    """Numbers of the whole process, which may run more than one node."""

    cpu_s: float
    """Seconds of processor time, in user and system mode."""
    resident_bytes: int
    """Memory that is really held."""
    open_files: int
    """Descriptors: files and sockets; -1 where that is not known."""
