"""Kafka's command line tools, called one after the other in one Java process, since starting Java for each call is slow.

    with KafkaTools(kafka) as tools:
        print(tools.topics("--bootstrap-server", address, "--list").stdout)

Each call returns the tool's own exit code and output, as in its own process (tests/support/java/RunTools.java). One process
serves one caller at a time.
"""

import base64
import select
import subprocess
import time
from collections.abc import Sequence
from types import TracebackType

from tests.support.servers.apache_kafka import JAVA_SOURCES, ApacheKafka, ToolFailed, ToolResult

TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console_producer": "org.apache.kafka.tools.ConsoleProducer",
    "console_consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
    "delegation_tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "get_offsets": "org.apache.kafka.tools.GetOffsetShell",
    "producer_performance": "org.apache.kafka.tools.ProducerPerformance",
    "delete_records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log_dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata_quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "broker_api_versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "leader_election": "org.apache.kafka.tools.LeaderElectionCommand",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "dump_log": "org.apache.kafka.tools.DumpLogSegments",
}
"""Short names for `KafkaTools.run`."""


class KafkaTools:
    """A Java process that runs tools until it is closed. It starts with the first call."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._command = [*kafka.jvm(), *kafka.program(JAVA_SOURCES / "RunTools.java")]
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, tool: str, *arguments: object, stdin: str = "", timeout_s: float = 240, check: bool = True) -> ToolResult:
        """Call a tool by its name in `TOOLS`, or by its class; `ToolFailed` unless it ends with 0 (or `check` is off)."""
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        fields = [TOOLS.get(tool, tool), stdin, *map(str, arguments)]
        self._process.stdin.write(" ".join(map(_encoded, fields)).encode() + b"\n")
        self._process.stdin.flush()
        code, stdout, stderr = self._answer(tool, arguments, timeout_s).split(" ")
        result = ToolResult(int(code), _decoded(stdout), _decoded(stderr))
        if check and result.rc != 0:
            raise ToolFailed(
                f"{tool} {' '.join(map(str, arguments))} ended with {result.rc}.\n{result.stdout}\n{result.stderr}"
            )
        return result

    def _answer(self, tool: str, arguments: Sequence[object], timeout_s: float) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        received = b""
        output = select.poll()  # select() takes no descriptors above 1023
        output.register(self._process.stdout, select.POLLIN)
        while not received.endswith(b"\n"):
            ready = output.poll(max(0.0, deadline - time.monotonic()) * 1000)
            piece = self._process.stdout.read1(1 << 16) if ready else b""  # type: ignore[attr-defined]  # it is buffered
            if not piece:
                self.close()
                what = "the Java process ended" if ready else f"it was still running after {timeout_s} s, and was ended"
                raise ToolFailed(f"{tool} {' '.join(map(str, arguments))}: {what}")
            received += piece
        return received.decode("ascii").rstrip("\n")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> "KafkaTools":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _encoded(field: str) -> str:
    return base64.b64encode(field.encode()).decode("ascii") or "-"


def _decoded(field: str) -> str:
    return "" if field == "-" else base64.b64decode(field).decode("utf-8", "replace")
