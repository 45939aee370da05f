"""How long `ottla sql "SELECT …"` takes to its first row, with a new Spark and with the one that stays between calls.

python -m bench.spark.first_row              three rounds, about 3 minutes; at first one more, for the archive of classes
python -m bench.spark.first_row --rounds 1

Processor time is that of the call and of all processes that it starts or uses, until its end. On a busy machine look at that.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.clients.broker import BenchBroker

from ottla import Producer

RECORDS = 1000
STATEMENT = "SELECT id, amount FROM orders WHERE id >= 0 LIMIT 3"
BECOME_SUBREAPER = 36
"""prctl: processes whose parent has ended become children of this one, which learns their processor time."""

Measured = tuple[float, float]
"""Seconds to the first row, and of processor time."""


def used_s(pid: int) -> float:
    """Processor time of a process, its children and what they have waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [each for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(used_s(int(each)) for each in children)


def children() -> set[int]:
    """The processes that this one is the parent of."""
    return {int(each) for path in Path("/proc/self/task").glob("*/children") for each in path.read_text().split()}


class Calls:
    """Calls of `ottla sql` with folders of their own."""

    def __init__(self, servers: str, folder: Path) -> None:
        self._folder = folder
        self._others = children()
        self._command = [sys.executable, "-m", "ottla", "sql", "-b", servers]
        homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "STATE")}
        self.variables = {**os.environ, **homes, "XDG_RUNTIME_DIR": str(folder)}

    def run(self, *arguments: str, **variables: str) -> Measured:
        """One call that prints rows."""
        lock = self._folder / "ottla" / "sql.lock"
        keeper = int(lock.read_text()) if lock.exists() else None
        before = os.times()
        kept = used_s(keeper) if keeper is not None else 0.0
        begin_s = time.monotonic()
        with subprocess.Popen(
            [*self._command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**self.variables, "OTTLA_SPARK_ARCHIVE": "on", **variables},
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline(), "no row has come"
            first_s = time.monotonic() - begin_s
            process.stdout.read()
        is_left = "--warm" in arguments
        if not is_left:
            self._reap()  # Spark's JVM, which ends after the call
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        if is_left:
            used += used_s(int(lock.read_text())) - kept
        return first_s, used

    def stop(self) -> None:
        """End the Spark that stays."""
        command = [sys.executable, "-m", "ottla", "sql", "--stop"]
        subprocess.run(command, env=self.variables, stdout=subprocess.DEVNULL, check=True)
        self._reap()

    def _reap(self) -> None:
        """Wait for all processes that calls have left behind."""
        while left := children() - self._others:
            for pid in left:
                os.waitpid(pid, 0)


def measure(calls: Calls, rounds: int) -> dict[str, list[Measured]]:
    """Each kind of call, in turn."""
    # A live query may run for hours, so a text with the word EMIT gets a JVM with all that pays off later: the state before.
    before = f"{STATEMENT} /* as before: no EMIT */"

    def as_before() -> Measured:
        return calls.run("--no-warm", before, OTTLA_SPARK_ARCHIVE="off")

    kinds: dict[str, Callable[[], Measured]] = {
        "as before: no archive, both compilers": as_before,
        "a Spark of its own": lambda: calls.run("--no-warm", STATEMENT),
        "the first call that leaves Spark behind": lambda: calls.run("--warm", STATEMENT),
        "the second": lambda: calls.run("--warm", STATEMENT),
        "the third": lambda: calls.run("--warm", STATEMENT),
    }
    found: dict[str, list[Measured]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind, call in kinds.items():
            found[kind].append(call())
            print(f"round {number + 1}: {kind}: {found[kind][-1][0]:.1f} s", file=sys.stderr)
        calls.stop()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1, 0, 0, 0)
    with BenchBroker() as broker, tempfile.TemporaryDirectory() as folder:
        topic = broker.create_topic(2)
        with Producer(broker.bootstrap) as producer:
            values = [b'{"id": %d, "amount": %d.5}' % (number, number) for number in range(RECORDS)]
            assert producer.send_many(topic, values).wait(60) == RECORDS
        calls = Calls(broker.bootstrap, Path(folder))
        declare = f"CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (topic='{topic}', format='json')"
        subprocess.run([*calls._command, declare], env=calls.variables, check=True)
        print("making the archive of Spark's classes", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "ottla.spark.class_archive"], env=calls.variables, check=True)
        try:
            found = measure(calls, options.rounds)
        finally:
            calls.stop()
    base = statistics.median(first for first, _ in next(iter(found.values())))
    print(f"{'median of ' + str(options.rounds):42}{'first row':>12}{'':>8}{'processor':>12}")
    for kind, values in found.items():
        first_s, used = (statistics.median(column) for column in zip(*values, strict=True))
        print(f"{kind:42}{first_s:10.1f} s{first_s / base:7.2f}x{used:10.1f} s")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
