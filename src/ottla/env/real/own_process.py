"""This process as the operating system sees it: its name, and what happens to it when its parent ends."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

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
