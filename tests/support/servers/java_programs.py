"""Long-running Java programs on Kafka's class path: compiled once, and started again when a test has killed them.

programs = JavaPrograms(ApacheKafka.obtain(["streams"]), folder)
with programs.start("WordCount", "/some/state", "application.id=words") as process:
    process.await_line("running")
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests.support.jars.java_classes import compiled
from tests.support.servers.apache_kafka import JAVA_SOURCES, ApacheKafka, KafkaUnavailable
from tests.support.servers.kafka_server import HANG_S, QUICK_JVM_FLAGS

TAIL_LINES = 40
TAIL_CHARACTERS = 300
LOGGED = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    # Tests kill brokers: warnings about lost connections are expected.
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.NetworkClient=error",
)


class JavaProcess:
    """A program that runs until it ends or is killed. Its output is kept."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # kept as long as the process
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT, start_new_session=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended_with(self) -> int | None:
        return self._process.poll()

    def text(self) -> str:
        """All that it has printed so far."""
        return self.printed(0).decode("utf-8", "replace")

    def printed(self, position: int) -> bytes:
        """What it has printed so far, from a byte position on."""
        return os.pread(self._output.fileno(), 1 << 27, position)

    def tail(self) -> str:
        return "\n".join(line[:TAIL_CHARACTERS] for line in self.text().splitlines()[-TAIL_LINES:])

    def await_line(self, part: str, timeout_s: float = HANG_S) -> None:
        """Return when a line with `part` in it has been printed."""
        deadline = time.monotonic() + timeout_s
        while part not in self.text():
            self.check_alive()
            assert time.monotonic() < deadline, f"{self.name} did not say {part!r} in {timeout_s} s:\n{self.tail()}"
            time.sleep(0.02)

    def check_alive(self) -> None:
        assert self.ended_with is None, f"{self.name} ended with {self.ended_with}:\n{self.tail()}"

    def kill(self) -> None:
        """End it at once (SIGKILL). Harmless when it is gone."""
        self._process.kill()
        self._process.wait()

    def terminate(self, timeout_s: float = HANG_S) -> int:
        """Ask it to end (SIGTERM), and wait."""
        self._process.terminate()
        return self._process.wait(timeout_s)

    def __enter__(self) -> "JavaProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        if isinstance(error, Exception):
            error.add_note(f"The output of {self.name} ends with:\n{self.tail()}")
        self._output.close()


class JavaPrograms:
    """Programs of tests/support/java and of Kafka's jars, compiled into `folder` when first started."""

    def __init__(self, kafka: ApacheKafka, folder: Path) -> None:
        self._kafka = kafka
        self._folder = folder

    def start(self, main_class: str, *arguments: object, heap_mb: int = 256) -> JavaProcess:
        """Start a program of ours (a file of that name in tests/support/java) or a class of Kafka's."""
        if (JAVA_SOURCES / f"{main_class}.java").exists():
            self.compile(main_class)
        classpath = os.pathsep.join([self._kafka.server_classpath, str(self._folder)])
        flags = [flag for flag in QUICK_JVM_FLAGS if not flag.startswith("-Xmx")]
        command = [*self._kafka.jvm([*flags, f"-Xmx{heap_mb}m", *LOGGED]), "-cp", classpath, main_class, *map(str, arguments)]
        return JavaProcess(main_class.rpartition(".")[2], command)

    def compile(self, main_class: str) -> None:
        """Put the classes of a file of tests/support/java into the folder, unless that is done."""
        if (self._folder / f"{main_class}.class").exists():
            return
        classes = compiled(self._kafka.java, self._kafka.server_classpath, JAVA_SOURCES / f"{main_class}.java")
        if classes is None:
            raise KafkaUnavailable(f"there is no javac beside {self._kafka.java} or on PATH: install a whole JDK")
        shutil.copytree(classes, self._folder, dirs_exist_ok=True)
