"""The guard ends what a test's process has left, also processes that are stopped."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S

from ottla.env.real import guard

SLEEP = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]


def start_guard() -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-I", "-S", guard.__file__], stdin=subprocess.PIPE, text=True)


def test_what_is_left_is_killed_and_the_folder_removed(tmp_path: Path) -> None:
    folder = tmp_path / "data of a test"
    (folder / "node-1").mkdir(parents=True)
    paused, dropped = subprocess.Popen(SLEEP), subprocess.Popen(SLEEP)
    try:
        paused.send_signal(signal.SIGSTOP)
        watching = start_guard()
        watching.communicate(f"folder {folder}\nadd {paused.pid}\nadd {dropped.pid}\ndrop {dropped.pid}\n", HANG_S)
        assert paused.wait(HANG_S) == -signal.SIGKILL
        assert dropped.poll() is None
        assert not folder.exists()
        assert watching.returncode == 0
    finally:
        for each in (paused, dropped):
            each.kill()
            each.wait()


def test_paused_processes_are_continued_and_may_end_by_themselves(tmp_path: Path) -> None:
    """As the nodes of `ottla up --nodes` do when their stdin ends; one that does not is killed."""
    waiting = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read(); sys.exit(7)"]
    clean, stubborn = subprocess.Popen(waiting, stdin=subprocess.PIPE), subprocess.Popen(SLEEP)
    try:
        for each in (clean, stubborn):
            each.send_signal(signal.SIGSTOP)
        assert clean.stdin is not None
        clean.stdin.close()
        watching = start_guard()
        assert watching.stdin is not None
        watching.stdin.write(f"grace 3\nadd {clean.pid}\nadd {stubborn.pid}\n")
        watching.stdin.close()
        assert clean.wait(HANG_S) == 7
        assert stubborn.wait(HANG_S) == -signal.SIGKILL
        assert watching.wait(HANG_S) == 0
    finally:
        for each in (clean, stubborn):
            each.kill()
            each.wait()


def is_ignored(pid: int, number: signal.Signals) -> bool:
    (mask,) = re.findall(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) & (1 << number - 1))


def test_signals_of_a_terminal_do_not_end_it() -> None:
    watching = start_guard()
    assert watching.stdin is not None
    child = subprocess.Popen(SLEEP)
    try:
        watching.stdin.write(f"add {child.pid}\n")
        watching.stdin.flush()
        await_true(lambda: is_ignored(watching.pid, signal.SIGTERM), "the guard is up")
        watching.send_signal(signal.SIGINT)
        watching.send_signal(signal.SIGTERM)
        watching.communicate(timeout=HANG_S)
        assert child.wait(HANG_S) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
