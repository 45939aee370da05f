"""The broker of a run: an Ottla node in a process of its own, with its data in memory where the system has a place for that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
FREE_BYTES_MIN = 3 << 30

SERVER = """
import sys
from ottla.testing import Broker
with Broker({"log.segment.delete.delay.ms": 0}, data=sys.argv[1]) as broker:
    print(broker.bootstrap_servers, flush=True)
    for line in sys.stdin:
        verb, topic, partitions = line.split()
        if verb == "create":
            broker.create_topic(topic, partitions=int(partitions))
        else:
            broker.delete_topic(topic)
        print("done", flush=True)
"""


def data_parent() -> str | None:
    """Where to keep the data: disks differ more than clients, and are not what is measured."""
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > FREE_BYTES_MIN:
        return str(SHARED_MEMORY)
    return None


class BenchBroker:
    """A broker that runs until the `with` block ends."""

    def __enter__(self) -> BenchBroker:
        self._folder = tempfile.mkdtemp(prefix="ottla-bench-", dir=data_parent())
        command = [sys.executable, "-c", SERVER, self._folder]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.bootstrap = self._answer()
        self._made = 0
        return self

    def __exit__(self, *failure: object) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            self._child.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def create_topic(self, partitions: int) -> str:
        self._made += 1
        name = f"bench-{self._made}"
        self._ask(f"create {name} {partitions}")
        return name

    def delete_topic(self, name: str) -> None:
        self._ask(f"delete {name} 0")

    def cpu_s(self) -> float:
        """The processor time that the broker has used; 0 where the system does not say."""
        try:
            fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _ask(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline().strip()
        if not line:
            raise SystemExit("the benchmark's broker has ended: its messages are above")
        return line
