"""The keeper of a test process or a benchmark, as a process of its own (`keeping.py` starts it and says what for).

    python -I -S keeper.py MARK FOLDER

It reads its standard input, on which nothing ever comes. Where that ends, the process that started it has ended, in whatever
way; then every process with MARK in its environment is killed, until there is none, and FOLDER is removed. Standard library
only, and little of it: every test process starts one.
"""

import os
import signal
import sys
import time

GIVE_UP_S = 20
PAUSE_S = 0.02
QUIET_LOOKS = 2
"""So often in a row must nothing be found: a process that is just being started has its parent's environment for a moment."""


def main() -> None:
    mark, folder = sys.argv[1].encode(), sys.argv[2]
    # Whoever ends a whole terminal, session or group of processes does not mean the one that tidies up.
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
    """Kill every process whose environment has `mark`; how many there were."""
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
    except OSError:  # it has ended meanwhile, or is not ours
        return False
    return True


def _kill_listed(mark: bytes) -> int:
    """Where there is no /proc: what `ps` tells of environments."""
    import subprocess

    listed = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], capture_output=True, check=False).stdout
    pids = {int(line.split(None, 1)[0]) for line in listed.splitlines() if mark in line} - {os.getpid()}
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:  # it has ended meanwhile
            pass
    return len(pids)


def remove(folder: str, deadline: float) -> None:
    """Remove a folder into which the dying may still have written."""
    import shutil

    while os.path.exists(folder):
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() > deadline:
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
