"""The keeper: processes that tests start end with the tests, however those end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.keeping import FOLDER_PREFIX, FRESH_S, lock, remove_stale

ROOT = Path(__file__).parents[3]
GIVE_UP_S = 60

OTTLA = """
import tempfile, time
from tests.support.servers.ottla_server import start_ottla
server = start_ottla()
print(server.pid, tempfile.gettempdir(), flush=True)
time.sleep(600)
"""

APACHE = """
import tempfile, time
from tests.support.servers.apache_kafka import ApacheKafka
server = ApacheKafka.obtain().start_server()
print(server.pid, tempfile.gettempdir(), flush=True)
time.sleep(600)
"""

FROM_A_THREAD = """
import subprocess, sys, tempfile, threading, time
from tests.support.servers.keeping import keep
keep()
sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
grandchild = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {sleeper!r}])"
def start():
    global child
    child = subprocess.Popen([sys.executable, "-c", grandchild], stdout=subprocess.PIPE, text=True, start_new_session=True)
starting = threading.Thread(target=start)
starting.start()
starting.join()
pid = child.stdout.readline().strip()
assert child.poll() is None
print(pid, tempfile.gettempdir(), flush=True)
time.sleep(600)
"""

PYTEST = """
import signal, sys
import pytest
signal.signal(signal.SIGINT, signal.default_int_handler)  # in background jobs of a shell, SIGINT is ignored
sys.exit(pytest.main(sys.argv[1:]))
"""

SLEEPER = """
import subprocess, sys, tempfile, time
from pathlib import Path
def test_it(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    part = Path(__file__).with_name(f"{child.pid}.part")
    part.write_text(f"{child.pid} {tempfile.gettempdir()}")
    part.rename(Path(__file__).with_name("started"))
    time.sleep(600)
"""


def is_gone(pid: int) -> bool:
    """Whether the process has ended. It may be left as a zombie, which has ended, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return Path("/proc/self").exists()


def await_gone(pid: int, folder: Path) -> None:
    deadline = time.monotonic() + GIVE_UP_S
    while not is_gone(pid) or folder.exists():
        assert time.monotonic() < deadline, f"{'the folder' if is_gone(pid) else 'the child'} is still there"
        time.sleep(0.02)


def killed_parent(program: str) -> tuple[int, Path]:
    """Run a program that prints a child's pid and its temporary folder, and kill it. Both exist before the kill."""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            pid, folder = parent.stdout.readline().split()
            assert not is_gone(int(pid))
            assert Path(folder).name.startswith(FOLDER_PREFIX)
        finally:
            parent.kill()
    return int(pid), Path(folder)


def test_ottla_ends_with_a_killed_parent() -> None:
    await_gone(*killed_parent(OTTLA))


@pytest.mark.slow
def test_java_ends_with_a_killed_parent(apache_kafka: ApacheKafka) -> None:
    await_gone(*killed_parent(APACHE))


def test_grandchild_in_another_session_ends_with_a_killed_parent() -> None:
    await_gone(*killed_parent(FROM_A_THREAD))


@pytest.mark.parametrize(
    ("options", "whom", "how"),
    [
        pytest.param(["-p", "no:xdist"], "pytest", signal.SIGTERM, id="pytest-terminated"),
        pytest.param(["-n", "1"], "pytest", signal.SIGKILL, id="controller-killed", marks=pytest.mark.slow),
        pytest.param(["-n", "1"], "pytest", signal.SIGTERM, id="controller-terminated", marks=pytest.mark.slow),
        pytest.param(["-n", "1"], "pytest", signal.SIGINT, id="controller-interrupted", marks=pytest.mark.slow),
        pytest.param(["-n", "1"], "worker", signal.SIGKILL, id="worker-killed", marks=pytest.mark.slow),
    ],
)
def test_interrupted_run_leaves_no_processes_and_folders(
    tmp_path: Path, options: Sequence[str], whom: str, how: signal.Signals
) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_it.py").write_text(SLEEPER)
    command = [sys.executable, "-c", PYTEST, "-q", "-p", "no:cacheprovider", *options, f"--rootdir={tmp_path}", str(tmp_path)]
    run = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        pid, folder = await_started(tmp_path / "started", run)
        os.kill(run.pid if whom == "pytest" else parent_of(pid), how)
        await_gone(pid, folder)
    finally:
        run.kill()
        run.wait()


def await_started(path: Path, run: "subprocess.Popen[bytes]") -> tuple[int, Path]:
    deadline = time.monotonic() + GIVE_UP_S
    while not path.exists():
        assert run.poll() is None, f"pytest ended with {run.returncode} before its test began"
        assert time.monotonic() < deadline, "the test did not begin"
        time.sleep(0.02)
    pid, folder = path.read_text().split()
    return int(pid), Path(folder)


def parent_of(pid: int) -> int:
    output = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(output.stdout)


def test_next_run_removes_folders_without_an_owner(tmp_path: Path) -> None:
    names = ("abandoned", "owned", "fresh")
    abandoned, owned, fresh = (tmp_path / f"{FOLDER_PREFIX}{name}" for name in names)
    other = tmp_path / "other"
    for folder in (abandoned, owned, fresh, other):
        folder.mkdir()
        (folder / "data").write_text("x")
    long_ago = time.time() - FRESH_S - 1
    for folder in (abandoned, owned, other):
        os.utime(folder, (long_ago, long_ago))
    held = lock(owned)
    assert held is not None
    try:
        remove_stale(tmp_path)
    finally:
        os.close(held)
    assert sorted(tmp_path.iterdir()) == sorted([owned, fresh, other])
