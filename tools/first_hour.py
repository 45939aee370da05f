"""The first hour on a new machine, in seconds: install, a node up, the first record, a transaction, which kernels are in use.

    python tools/first_hour.py dist/ottla-0.1.0-...whl            an empty environment of this Python, a node, the steps
    python tools/first_hour.py WHEEL --python python3.13          of another Python
    python tools/first_hour.py --ottla venv/bin/ottla             an Ottla that is installed already
    python tools/first_hour.py --bootstrap localhost:9092         a node that runs already, in a container or as a service

The environment has no pip and no compiler, and nothing of this machine on its PATH. The clock starts with `pip install`, its
cache warm: the wheel's dependencies are fetched before. `--limit-s 10` fails if the first record takes longer than that.
tools/dist.py runs the same steps with every wheel that it has built.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STEP_S = 600
"""No step takes this long, on the busiest machine: one that does hangs."""
TOPIC = "first-hour"

TRANSACTION = """
import sys
from ottla import Consumer, Producer

servers = sys.argv[1]
with Producer(servers, transactional_id="first-hour") as producer:
    producer.init_transactions()
    with producer.transaction():
        producer.send("first-hour", b"kept")
    try:
        with producer.transaction():
            producer.send("first-hour", b"dropped")
            producer.flush()
            raise LookupError
    except LookupError:
        pass
    with producer.transaction():
        producer.send("first-hour", b"kept too")
reading = {"group_id": "first-hour", "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
values = []
with Consumer(servers, **reading) as consumer:
    consumer.subscribe(["first-hour"])
    while b"kept too" not in values:
        values += [record.value for record in consumer.poll(timeout=30)]
assert b"kept" in values and b"dropped" not in values, values
"""


class StepFailed(Exception):
    """A step went wrong; the text says which command, and what it printed."""


def run(command: list[str], env: dict[str, str], text: str = "") -> str:
    """The output of `command`. Raises StepFailed if it fails or hangs."""
    shown = " ".join(part if "\n" not in part else "..." for part in command)
    try:
        done = subprocess.run(command, env=env, input=text, capture_output=True, text=True, timeout=STEP_S, check=False)
    except subprocess.TimeoutExpired as hung:
        raise StepFailed(f"{shown} did not end within {STEP_S} s") from hung
    if done.returncode:
        raise StepFailed(f"{shown} ended with code {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def bare_environment(folder: Path) -> dict[str, str]:
    """Variables of a machine without a compiler, of which nothing leads back to a source tree."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("LANG", "LC_", "TMP"))}
    return kept | {"PATH": str(folder), "HOME": str(folder), "CC": "/bin/false", "PYTHONNOUSERSITE": "1"}


def make_environment(python: str, folder: Path) -> Path:
    """An empty virtual environment, also without pip; its Python."""
    run([python, "-m", "venv", "--without-pip", str(folder)], dict(os.environ))
    return folder / "bin" / "python"


def installer() -> list[str]:
    """A pip that installs into another environment."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def fetch_dependencies(wheel: Path, python: str, scratch: Path) -> None:
    """Install the wheel once beside the measured environment: pip's cache is warm then."""
    target = make_environment(python, scratch / "warm")
    run([*installer(), "--python", str(target), "install", "-q", "--only-binary", ":all:", str(wheel)], dict(os.environ))
    shutil.rmtree(scratch / "warm")


@contextmanager
def node(ottla: list[str], data: Path, env: dict[str, str]) -> Iterator[str]:
    """The address of a node, which is stopped at the end; a stop by SIGTERM must be a clean one."""
    command = [*ottla, "up", "--port", "0", "--json", "--data", str(data)]
    log = data.with_suffix(".log")
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    hung = threading.Timer(STEP_S, process.kill)
    hung.start()
    try:
        line = process.stdout.readline()
        if not line:
            process.wait()
            raise StepFailed(f"{' '.join(command)} ended with code {process.returncode}:\n{log.read_text(encoding='utf-8')}")
        yield str(json.loads(line)["bootstrap_servers"])
        process.send_signal(signal.SIGTERM)
        if process.wait(STEP_S) != 0:
            raise StepFailed(f"the node ended with code {process.returncode}:\n{log.read_text(encoding='utf-8')}")
    finally:
        hung.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def used_by_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Hour:
    """Prints each step with its time, counted from the start of the clock."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self.start()

    def start(self) -> None:
        self._started_s = time.monotonic()
        self._used_before_s = used_by_children_s()

    @property
    def used_s(self) -> float:
        """Processor time of the commands that have ended since the start: on a busy machine it says more than the clock."""
        return used_by_children_s() - self._used_before_s

    def step(self, what: str) -> float:
        passed_s = time.monotonic() - self._started_s
        if not self._quiet:
            print(f"  {passed_s:6.2f} s  {what}", flush=True)
        return passed_s


def first_record(ottla: list[str], servers: str, env: dict[str, str]) -> None:
    """One record in and out again, by the two commands that a user tries first."""
    run([*ottla, "produce", TOPIC, "-b", servers], env, "hello\n")
    read = run([*ottla, "consume", TOPIC, "--from-beginning", "--max-messages", "1", "-b", servers], env)
    if read.strip() != "hello":
        raise StepFailed(f"sent hello, but {read!r} came back")


def check_kernels(versions: str, wanted: str) -> None:
    """Refuse an Ottla whose kernels are not those that it should have, all of them."""
    line = next((line for line in versions.splitlines() if line.startswith("kernels ")), "")
    words = line.split()
    expected = {"compiled": words[3:4] and words[1] == words[3], "pure": words[1:2] == ["0"], "any": bool(words)}[wanted]
    if not expected:
        raise StepFailed(f"wanted {wanted} kernels, but `ottla --version --all` says: {line or versions}")


def live(ottla: list[str], python: str | None, servers: str, env: dict[str, str], hour: Hour, kernels: str) -> float:
    """The steps after a node is up; when the first record was read."""
    first_record(ottla, servers, env)
    record_s = hour.step("first record produced and consumed")
    if python is not None:
        run([python, "-c", TRANSACTION, servers], env)
        hour.step("a transaction committed, one aborted; read_committed sees the one")
    check_kernels(run([*ottla, "--version", "--all"], env), kernels)
    hour.step(f"ottla --version --all: {kernels} kernels")
    return record_s


def wheel_hour(wheel: Path, python: str, kernels: str, quiet: bool = False) -> float:
    """Install `wheel` into an empty environment and go through all steps; the seconds to the first record."""
    hour = Hour(quiet)
    with tempfile.TemporaryDirectory(prefix="ottla-hour-") as name:
        scratch = Path(name)
        fetch_dependencies(wheel, python, scratch)
        own_python = str(make_environment(python, scratch / "venv"))
        env = bare_environment(scratch / "venv" / "bin")
        hour.start()
        # pip itself runs outside; --only-binary: nothing is built, so nothing needs a compiler
        install = [*installer(), "--python", own_python, "install", "-q", "--only-binary", ":all:", str(wheel)]
        run(install, os.environ | {"CC": "/bin/false"})
        hour.step(f"pip install {wheel.name}; {hour.used_s:.1f} s of processor time")
        ottla = [str(scratch / "venv" / "bin" / "ottla")]
        with node(ottla, scratch / "data", env) as servers:
            hour.step(f"node up at {servers}")
            record_s = live(ottla, own_python, servers, env, hour, kernels)
        hour.step(f"node stopped cleanly; {hour.used_s:.1f} s of processor time for all of it")
    return record_s


def installed_hour(ottla: list[str], servers: str | None, kernels: str) -> float:
    """The steps with an Ottla that is installed: at a node that runs, or at one of their own."""
    hour = Hour()
    env = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="ottla-hour-") as name:
        if servers is not None:
            return live(ottla, None, servers, env, hour, kernels)
        with node(ottla, Path(name) / "data", env) as own:
            hour.step(f"node up at {own}")
            return live(ottla, None, own, env, hour, kernels)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("wheel", nargs="?", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the Python to install the wheel into")
    parser.add_argument("--ottla", help="an installed ottla; the default with --bootstrap: the one on PATH")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="a node that runs already")
    parser.add_argument("--kernels", choices=("compiled", "pure", "any"), help="default: as the wheel's name says")
    parser.add_argument("--limit-s", type=float, help="fail if the first record takes longer")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a node of ours is stopped too
    if (asked.wheel is None) == (asked.ottla is None and asked.bootstrap is None):
        parser.error("name a wheel, or an installed ottla (--ottla, --bootstrap)")
    try:
        if asked.wheel is not None:
            if not asked.wheel.is_file():
                parser.error(f"there is no {asked.wheel}: make dist builds the wheels")
            kernels = asked.kernels or ("pure" if asked.wheel.stem.endswith("-none-any") else "compiled")
            record_s = wheel_hour(asked.wheel.resolve(), asked.python, kernels)
        else:
            record_s = installed_hour([asked.ottla or "ottla"], asked.bootstrap, asked.kernels or "any")
    except (StepFailed, OSError) as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    if asked.limit_s is not None and record_s > asked.limit_s:
        print(f"FAILED: the first record took {record_s:.1f} s, more than {asked.limit_s:g} s", file=sys.stderr)
        return 1
    print(f"first record after {record_s:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
