"""Ends the nodes of a test's cluster if the test's process ends without doing so: run as a script of its own.

A node ends by itself when its stdin does, unless it is paused: a stopped process runs nothing. So this one waits for the end of
its own stdin, kills the processes that are left and removes the temporary folder. Its lines: `add PID`, `drop PID`, `folder
PATH`. Imports nothing of Ottla's: it has to start quickly.
"""

import os
import shutil
import signal
import sys
import time

GONE_S = 5.0


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # these reach every process of a terminal; the test's process decides
    pids: set[int] = set()
    folder = ""
    for line in sys.stdin:
        word, _, value = line.rstrip("\n").partition(" ")
        if word == "add":
            pids.add(int(value))
        elif word == "drop":
            pids.discard(int(value))
        elif word == "folder":
            folder = value
    end(pids)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def end(pids: set[int]) -> None:
    """Kill the processes, and wait until they are gone: they must not write into a folder that is being removed."""
    deadline_s = time.monotonic() + GONE_S
    while pids and time.monotonic() < deadline_s:
        for pid in list(pids):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pids.discard(pid)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
