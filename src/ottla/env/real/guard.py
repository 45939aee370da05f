"""Ends the child processes of a process that was killed, also those that are paused: run as a script of its own.

A node ends by itself when its stdin does, unless it is paused: a stopped process runs nothing. So this one waits for the end of
its own stdin, continues the processes that are left, kills them after a grace period and removes the temporary folder. Its
lines: `add PID`, `group PID` (all processes of its group, killed at once), `drop PID`, `grace SECONDS`, `folder PATH`. Imports
nothing of Ottla's: it has to start quickly.
"""

import os
import shutil
import signal
import sys
import time

GONE_S = 5.0
"""How long it waits for killed processes to be gone."""


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # these reach every process of a terminal; the guarded process decides
    pids: dict[int, int | None] = {}
    groups: set[int] = set()
    folder, grace_s = "", 0.0
    for line in sys.stdin:
        word, _, value = line.rstrip("\n").partition(" ")
        if word == "add":
            pids[int(value)] = opened(int(value))
        elif word == "group":
            groups.add(int(value))
        elif word == "drop":
            pids.pop(int(value), None)
            groups.discard(int(value))
        elif word == "grace":
            grace_s = float(value)
        elif word == "folder":
            folder = value
    for group in groups:
        end_group(group)
    end(pids, grace_s)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def opened(pid: int) -> int | None:
    """A descriptor of the process, where there are such: its number may be another's when it has ended."""
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return None


def send(number: int, pid: int, descriptor: int | None) -> bool:
    """Signal a process; False if it is gone."""
    try:
        if descriptor is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_group(group: int) -> None:
    """Kill all processes of a group, and wait until they are gone."""
    until_s = time.monotonic() + GONE_S
    while time.monotonic() < until_s:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.02)  # they are not our children: nothing tells when they have ended


def end(pids: dict[int, int | None], grace_s: float = 0.0) -> None:
    """Let the processes end within `grace_s`, then kill them, and wait until they are gone: they may still write files."""
    for pid, descriptor in pids.items() if grace_s else ():
        send(signal.SIGCONT, pid, descriptor)
    kill_s = time.monotonic() + grace_s
    while pids and time.monotonic() < kill_s + GONE_S:
        number = 0 if time.monotonic() < kill_s else signal.SIGKILL
        pids = {pid: descriptor for pid, descriptor in pids.items() if send(number, pid, descriptor)}
        time.sleep(0.02)  # they are not our children: nothing tells when they have ended


if __name__ == "__main__":
    main()
