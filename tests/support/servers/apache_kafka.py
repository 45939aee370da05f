"""Runs Apache Kafka 4.3.0: its tools, its server, and Java programs of ours on its class path.

The pytest fixture `apache_kafka` (tests/conftest.py) gives one `ApacheKafka` per session; benchmarks call
`ApacheKafka.obtain()`. Servers listen on free loopback ports and keep their data in temporary folders by default.

    kafka = ApacheKafka.obtain()
    with kafka.start_server({"num.partitions": 3}) as server:
        kafka.run_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", server.bootstrap, "--list")
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.jars.java_classes import class_archive, compiled
from tests.support.jars.kafka_jars import KAFKA_VERSION, KafkaUnavailable, fetch_jars, find_java
from tests.support.logs.dump_log import Dump, parse_dump
from tests.support.servers.kafka_server import (
    HANG_S,
    LOG_LEVELS,
    QUICK_JVM_FLAGS,
    KafkaServer,
    default_properties,
    free_ports,
    properties_text,
    start_on_free_ports,
)

__all__ = ["KAFKA_VERSION", "ApacheKafka", "KafkaServer", "KafkaUnavailable", "ToolFailed", "ToolResult"]

JAVA_SOURCES = Path(__file__).parents[1] / "java"
LOG_BINDINGS = ("slf4j-nop-", "slf4j-simple-")
CLUSTER_ID = "b3R0bGEtdGVzdHMtMDAwMQ"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The exit code and output of a finished Java program."""

    rc: int
    stdout: str
    stderr: str


class ToolFailed(AssertionError):
    """A Java program ended with a code other than 0; the text has its output."""


class ApacheKafka:
    """Apache Kafka's jars and a Java to run them with."""

    def __init__(self, java: str, jars: Sequence[Path]) -> None:
        self.java = java
        # What is in all class paths comes first: they can share an archive of classes.
        self._jars = [str(jar) for jar in jars if not jar.name.startswith(LOG_BINDINGS)]
        self._tool_jars = [*self._jars, *(str(jar) for jar in jars if jar.name.startswith("slf4j-nop-"))]
        self._server_jars = [*self._jars, *(str(jar) for jar in jars if jar.name.startswith("slf4j-simple-"))]

    @classmethod
    def obtain(cls, groups: Sequence[str] = ("core",)) -> "ApacheKafka":
        """Find Java, and fetch the jars that are not in the cache; `KafkaUnavailable` says what is missing."""
        return cls(find_java(), fetch_jars(groups))

    @property
    def classpath(self) -> str:
        """For tools and programs of ours: logs nothing."""
        return os.pathsep.join(self._tool_jars)

    @property
    def server_classpath(self) -> str:
        """For servers: logs to standard error."""
        return os.pathsep.join(self._server_jars)

    def with_classes(self, folder: Path) -> "ApacheKafka":
        """The same with compiled classes of ours on the class path: plugins for a server."""
        extended = ApacheKafka(self.java, [])
        extended._jars = self._jars
        extended._tool_jars = [*self._tool_jars, str(folder)]
        extended._server_jars = [*self._server_jars, str(folder)]
        return extended

    def jvm(self, flags: Sequence[str] = QUICK_JVM_FLAGS) -> list[str]:
        """The beginning of a Java command. Libraries that it unpacks go to our temporary folder.

        A class path must begin with the jars of `classpath` or `server_classpath`: with -Xshare:auto it uses their archive.
        """
        archive = class_archive(self.java, self._jars) if "-Xshare:auto" in flags else None
        # Java prints why it does not take an archive among the output of a tool: not wanted there.
        shared = [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"] if archive is not None else []
        return [self.java, *flags, *shared, f"-Djava.io.tmpdir={tempfile.gettempdir()}"]

    def program(self, source: Path) -> list[str]:
        """The end of a Java command that runs a program of ours."""
        # Only programs of this folder are compiled for the next time: others are a test's own.
        classes = compiled(self.java, self.classpath, source) if source.parent == JAVA_SOURCES else None
        if classes is None:
            return ["-cp", self.classpath, str(source)]
        return ["-cp", os.pathsep.join([self.classpath, str(classes)]), source.stem]

    def run_tool(
        self,
        main_class: str,
        *arguments: object,
        stdin: str | None = None,
        timeout_s: float = 240,
        check: bool = True,
        jvm_flags: Sequence[str] = QUICK_JVM_FLAGS,
    ) -> ToolResult:
        """Run a class of Kafka's; `ToolFailed` with its output unless it ends with 0 (or `check` is off)."""
        command = [*self.jvm(jvm_flags), "-cp", self.classpath, main_class, *map(str, arguments)]
        return _run(command, main_class, stdin, timeout_s, check)

    def run_java(
        self, source: str | Path, *arguments: object, stdin: str | None = None, timeout_s: float = 240, check: bool = True
    ) -> ToolResult:
        """Run a single-file Java program: a path, or the name of a file in tests/support/java."""
        path = Path(source)
        if not path.is_absolute() and not path.exists():
            path = JAVA_SOURCES / path
        command = [*self.jvm(), *self.program(path), *map(str, arguments)]
        return _run(command, path.name, stdin, timeout_s, check)

    def format(
        self, data_dir: str | Path, properties: Mapping[str, object] | None = None, *, cluster_id: str = CLUSTER_ID
    ) -> None:
        """Format `data_dir` as the directory of a single node that is its own controller quorum."""
        broker_port, controller_port = free_ports(2)
        settings = default_properties(data_dir, broker_port, controller_port) | dict(properties or {})
        with tempfile.TemporaryDirectory(prefix="ottla-format-") as folder:
            config = Path(folder) / "server.properties"
            config.write_text(properties_text(settings))
            self.run_tool("kafka.tools.StorageTool", "format", "--standalone", "-t", cluster_id, "-c", config)

    def start_server(
        self,
        properties: Mapping[str, object] | None = None,
        *,
        data_dir: str | Path | None = None,
        jvm_flags: Sequence[str] = QUICK_JVM_FLAGS,
        ready_timeout_s: float = HANG_S,
    ) -> KafkaServer:
        """Start a single-node cluster (broker and controller), formatted if `data_dir` is not; returns when it answers.

        Use as a context manager, or call `stop`. Without `data_dir` the data is removed with the server. If another process
        takes one of the ports first, it tries again with other ports.
        """
        command = [*self.jvm(jvm_flags), *LOG_LEVELS, "-cp", self.server_classpath, "kafka.Kafka"]
        return start_on_free_ports(
            lambda: KafkaServer(command, properties or {}, data_dir),
            lambda server: self.format(server.data_dir, server.properties),
            ready_timeout_s,
        )

    def dump_log_segments(self, files: Sequence[str | Path], *options: str, deep: bool = True, timeout_s: float = 240) -> Dump:
        """Run Kafka's own DumpLogSegments over `files` (one Java start for all); returns its parsed output."""
        arguments = ["--files", ",".join(map(str, files)), *options]
        if deep:
            arguments.append("--deep-iteration")
        result = self.run_tool("org.apache.kafka.tools.DumpLogSegments", *arguments, timeout_s=timeout_s)
        return parse_dump(result.stdout, result.stderr)


def _run(command: Sequence[str], name: str, stdin: str | None, timeout_s: float, check: bool) -> ToolResult:
    try:
        done = subprocess.run(
            command,
            input=stdin if stdin is not None else "",
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise ToolFailed(
            f"{name} was still running after {timeout_s} s and was ended.\n{_tail(late.stdout, late.stderr)}"
        ) from None
    if check and done.returncode != 0:
        raise ToolFailed(f"{name} ended with {done.returncode}.\n{_tail(done.stdout, done.stderr)}")
    return ToolResult(done.returncode, done.stdout, done.stderr)


def _tail(*outputs: str | bytes | None) -> str:
    texts = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text or "" for text in outputs]
    return "\n".join(text[-4000:] for text in texts if text)
