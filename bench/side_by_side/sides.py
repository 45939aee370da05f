"""The two servers, under the same settings, and what is needed to put load on them.

`Bench` owns everything that must go away again: servers, temporary folders. Both servers of the pair are up at once and are
loaded one after the other; the one that is not measured does nothing. The tests' harness fetches, formats and starts them.
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
    # Stock settings but for these: deleted topics go at once, so that a row does not leave its data to the next one.
    "log.segment.delete.delay.ms": 0,
    "log.cleaner.backoff.ms": 100,
    "auto.create.topics.enable": "false",
    # The harness makes internal topics of one partition; here they have as many as Kafka gives them.
    "offsets.topic.num.partitions": 50,
    "transaction.state.log.num.partitions": 50,
    # Members of groups say often that they are there, and are assigned their share at once: else a group's start is made of
    # waiting. The harness has set group.initial.rebalance.delay.ms to 0.
    "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.assignment.interval.ms": 0,
}
LOG_LINES = 15
SETTLE_S = 3
"""After this long a server that has started does nothing more by itself."""

CLIENT_JVM_FLAGS = ("-Xmx512M", *(flag for flag in SERVER_JVM_FLAGS if not flag.startswith("-Xm")))
"""What Kafka's own scripts give its tools."""

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
    """One run: options, progress, the pair of servers once a row needs it, and the end of all of them."""

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
        """What the micro-benchmarks gave."""
        self.peaks_mb: dict[str, float] = {}
        """The most memory each side had under the produce loads."""
        self.idle_mb: dict[str, float] = {}
        """The memory of each side of the pair before it had anything to do."""

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def pair(self) -> tuple[Side, Side]:
        """Apache Kafka and Ottla, up and at rest; started with the first row that needs them."""
        if self._pair is None:
            self._pair = self.start(APACHE), self.start(OTTLA)
            time.sleep(SETTLE_S)
            self.idle_mb = {side.label: memory_mb(side.pid) for side in self._pair}
        return self._pair

    def start(self, label: str) -> Side:
        """A server of its own on a fresh directory; it lives until `end` or until the run is over."""
        self.progress.say(f"starting {label}")
        of_apache = label == APACHE
        server = self.kafka.start_server(SETTINGS, jvm_flags=SERVER_JVM_FLAGS) if of_apache else start_ottla(SETTINGS)
        self._stack.callback(server.kill)
        return Side(label, server)

    def end(self, side: Side) -> None:
        """End a server that `start` gave; its data goes with it."""
        side.server.kill()

    def end_pair(self) -> None:
        """End the shared servers, so that a row that starts its own has the machine to itself."""
        for side in self._pair or ():
            self.end(side)
        self._pair = None

    def log_tails(self) -> str:
        """The ends of what the servers of the pair have printed, for whoever must find out why a row failed."""
        tails = [(side.label, side.server.log_tail().splitlines()[-LOG_LINES:]) for side in self._pair or ()]
        return "\n".join(line for label, lines in tails for line in (f"The log of {label} ends with:", *lines))

    def run_class(self, main_class: str, *arguments: object, timeout_s: float = 600) -> str:
        """Run a Java class of Kafka's or of bench/java and return what it printed."""
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
    """Run a load program to its end, and end it if this run is interrupted."""
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
