"""The keeper of a test process or a benchmark: a separate process that cleans up after it (started by `keeping.py`).

    python -I -S keeper.py MARK FOLDER

It reads its standard input, which stays empty. When that ends, the process that started it has ended, also by a kill. The
keeper then kills every process with MARK in its environment, until there is none, and removes FOLDER. It imports little, and
only the standard library, since every test process starts one.
"""

import os
import signal
import sys
import time

GIVE_UP_S = 20
PAUSE_S = 0.02
QUIET_LOOKS = 2
"""How many scans in a row must find nothing: a process that is just starting has its parent's environment for a moment."""


def main() -> None:
    mark, folder = sys.argv[1].encode(), sys.argv[2]
    # Signals to a whole terminal, session or process group are not meant for the process that cleans up.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    deadline = time.monotonic() + GIVE_UP_S
    looks = 0
    while looks < QUIET_LOOKS and time.monotonic() < deadline:
        looks = 0 if kill_marked(mark) else looks + 1
        time.sleep(PAUSE_S)
    remove(folder, deadline)


def kill_marked(mark: bytes) -> int:
    """Kill every process whose environment has `mark`; returns how many there were."""
    if not os.path.exists("/proc/self/environ"):
        return _kill_listed(mark)
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            found += _kill_if_marked(int(name), mark)
    return found


def _kill_if_marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as environment:
            if mark not in environment.readall():
                return False
        os.kill(pid, signal.SIGKILL)
    except OSError:  # it has just ended, or is not ours
        return False
    return True


def _kill_listed(mark: bytes) -> int:
    """Like `kill_marked` on systems without /proc, with the environments that `ps` shows."""
    import subprocess

    listed = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], capture_output=True, check=False).stdout
    pids = {int(line.split(None, 1)[0]) for line in listed.splitlines() if mark in line} - {os.getpid()}
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:  # it has just ended
            pass
    return len(pids)


def remove(folder: str, deadline: float) -> None:
    """Remove a folder into which killed processes may still have written."""
    import shutil

    while os.path.exists(folder):
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() > deadline:
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
