"""The two servers with the same settings, and the programs that put load on them.

`Bench` owns everything that must be cleaned up: servers and temporary folders. Both servers of the pair run at the same time
and are loaded one after the other; the one that is not measured is idle. The tests' harness fetches, formats and starts them.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import APACHE, OTTLA
from bench.side_by_side.options import Options
from bench.side_by_side.processes import memory_mb
from bench.side_by_side.progress import Progress
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import SERVER_JVM_FLAGS, KafkaServer
from tests.support.servers.keeping import keep
from tests.support.servers.ottla_server import start_ottla

HEARTBEAT_MS = 100
SETTINGS = {
    # Kafka's defaults except for these. Files of deleted topics are removed at once, so that no row leaves data to the next.
    "log.segment.delete.delay.ms": 0,
    "log.cleaner.backoff.ms": 100,
    "auto.create.topics.enable": "false",
    # The harness gives internal topics one partition; here they have Kafka's default.
    "offsets.topic.num.partitions": 50,
    "transaction.state.log.num.partitions": 50,
    # Short heartbeat intervals and no initial delay, or the start of a group would consist of waiting. The harness sets
    # group.initial.rebalance.delay.ms to 0.
    "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.assignment.interval.ms": 0,
}
LOG_LINES = 15
SETTLE_S = 3
"""A server that has started is idle after this long."""

CLIENT_JVM_FLAGS = ("-Xmx512M", *(flag for flag in SERVER_JVM_FLAGS if not flag.startswith("-Xm")))
"""The JVM options that Kafka's own scripts pass to its tools."""

JAVA_SOURCES = Path(__file__).parents[1] / "java"


class Side:
    """A running server and its name in the table."""

    def __init__(self, label: str, server: KafkaServer) -> None:
        self.label = label
        self.server = server
        self.warm = False

    @property
    def pid(self) -> int:
        return self.server.pid


class Bench:
    """One run: options, progress, the pair of servers once a row needs it, and the clean-up."""

    def __init__(self, options: Options, progress: Progress) -> None:
        keep()
        self.options = options
        self.progress = progress
        self.kafka = ApacheKafka.obtain()
        self._stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._pair: tuple[Side, Side] | None = None
        self._classes: Path | None = None
        self.micro: dict[str, Any] = {}
        """Results of the micro-benchmarks."""
        self.peaks_mb: dict[str, float] = {}
        """Peak memory of each side under the produce loads."""
        self.idle_mb: dict[str, float] = {}
        """Memory of each side of the pair before its first load."""

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def pair(self) -> tuple[Side, Side]:
        """Apache Kafka and Ottla, running and idle; started for the first row that needs them."""
        if self._pair is None:
            self._pair = self.start(APACHE), self.start(OTTLA)
            time.sleep(SETTLE_S)
            self.idle_mb = {side.label: memory_mb(side.pid) for side in self._pair}
        return self._pair

    def start(self, label: str) -> Side:
        """Start a server on an empty directory. It runs until `end`, or until the run is over."""
        self.progress.say(f"starting {label}")
        of_apache = label == APACHE
        server = self.kafka.start_server(SETTINGS, jvm_flags=SERVER_JVM_FLAGS) if of_apache else start_ottla(SETTINGS)
        self.keep(server)
        return Side(label, server)

    def keep(self, server: KafkaServer) -> None:
        """Stop a server that a row has started itself, at the latest when the run is over."""
        self._stack.callback(server.kill)

    def end(self, side: Side) -> None:
        """Stop a server of `start`, and delete its data."""
        side.server.kill()

    def end_pair(self) -> None:
        """Stop the shared servers, so that a row with its own servers has the machine to itself."""
        for side in self._pair or ():
            self.end(side)
        self._pair = None

    def log_tails(self) -> str:
        """The last log lines of the pair's servers, to find out why a row failed."""
        tails = [(side.label, side.server.log_tail().splitlines()[-LOG_LINES:]) for side in self._pair or ()]
        return "\n".join(line for label, lines in tails for line in (f"The log of {label} ends with:", *lines))

    def run_class(self, main_class: str, *arguments: object, timeout_s: float = 600) -> str:
        """Run a Java class of Kafka or of bench/java, and return its output."""
        classpath = os.pathsep.join([str(self._compiled()), self.kafka.classpath])
        command = [*self.kafka.jvm(CLIENT_JVM_FLAGS), "-cp", classpath, main_class, *map(str, arguments)]
        return run_program(command, main_class, timeout_s)

    def _compiled(self) -> Path:
        """The folder with the classes of bench/java, compiled once per run."""
        if self._classes is None:
            folder = self.folder / "classes"
            sources = sorted(map(str, JAVA_SOURCES.glob("*.java")))
            beside_java = Path(self.kafka.java).resolve().parent
            compiler = shutil.which("javac", path=str(beside_java)) or shutil.which("javac")
            if compiler is None:
                raise LoadFailed(f"there is no javac beside {beside_java / 'java'} or on PATH: the benchmark needs a whole JDK")
            run_program([compiler, "-cp", self.kafka.classpath, "-d", str(folder), *sources], "javac", 120)
            self._classes = folder
        return self._classes


def run_program(command: Sequence[str], name: str, timeout_s: float) -> str:
    """Run a load program and return its output. It is stopped if this run is interrupted."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise LoadFailed(f"{name} ended with {process.returncode}.\n{out[-4000:]}\n{err[-4000:]}")
    return out
