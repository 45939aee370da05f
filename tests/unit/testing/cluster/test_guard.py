"""The guard ends what a test's process has left, also processes that are stopped."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S

from ottla.testing.cluster import guard

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
