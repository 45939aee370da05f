"""A cluster of three Apache Kafka nodes, each broker and controller, that can be killed, paused, moved and started again.

Node 1 is in rack a, node 2 in rack b, node 3 in rack c, and consumers that name their rack read from its replica. Leaders move
only when a test moves them or a node is lost. Two of the three nodes must be up for anything to change: they are the quorum.

    with ThreeNodes(ApacheKafka.obtain()) as cluster:
        ... cluster.bootstrap ...
        cluster.kill(2)
        cluster.start(2)
"""

import base64
import os
import re
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from tests.support.servers.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.support.servers.kafka_server import (
    LOG_LEVELS,
    QUICK_JVM_FLAGS,
    KafkaServer,
    ServerFailed,
    default_properties,
    free_ports,
    properties_text,
)

NODES = (1, 2, 3)
RACKS = {1: "a", 2: "b", 3: "c"}
JVM_FLAGS = (*(flag for flag in QUICK_JVM_FLAGS if not flag.startswith("-Xmx")), "-Xmx256m")
SETTINGS: dict[str, object] = {
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 3,
    "share.coordinator.state.topic.replication.factor": 3,
    "default.replication.factor": 3,
    "min.insync.replicas": 1,
    "auto.leader.rebalance.enable": "false",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    # A killed broker is fenced after its session: the default of 9 s would only make the tests long.
    "broker.session.timeout.ms": 4000,
    "broker.heartbeat.interval.ms": 500,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
}
_PORT_ATTEMPTS = 5


class ThreeNodes:
    """Three nodes and their directories. Use as a context manager."""

    def __init__(self, kafka: ApacheKafka | None = None) -> None:
        self._kafka = kafka
        self._folder = tempfile.TemporaryDirectory(prefix="ottla-three-")
        self._running: dict[int, KafkaServer] = {}
        self._paused: set[int] = set()
        ports = free_ports(6)
        self._controller_ports = dict(zip(NODES, ports[3:], strict=True))
        self.ports = dict(zip(NODES, ports[:3], strict=True))
        """Where clients find the brokers, by node id."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all three."""
        return self.bootstrap_of(*NODES)

    def bootstrap_of(self, *nodes: int) -> str:
        """The addresses of some nodes."""
        return ",".join(f"127.0.0.1:{self.ports[node]}" for node in nodes)

    @property
    def running(self) -> set[int]:
        """The nodes that are up, paused ones too."""
        return set(self._running)

    # One node

    def start(self, *nodes: int) -> None:
        """Start nodes on their data, all at the same time: one alone has no quorum and would never answer."""
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(self._start, nodes))

    def kill(self, *nodes: int) -> None:
        """SIGKILL."""
        self._end(nodes, KafkaServer.kill)

    def stop(self, *nodes: int) -> None:
        """A clean shutdown: leaders move away first."""
        self._end(nodes, KafkaServer.stop)

    def pause(self, node: int) -> None:
        """SIGSTOP: its connections stay open, and it answers nothing."""
        os.kill(self._running[node].pid, signal.SIGSTOP)
        self._paused.add(node)

    def resume(self, node: int) -> None:
        """SIGCONT."""
        self._paused.discard(node)
        os.kill(self._running[node].pid, signal.SIGCONT)

    def move(self, *nodes: int) -> None:
        """Let stopped nodes listen for clients at other ports from their next start on."""
        self.ports.update(zip(nodes, free_ports(len(nodes)), strict=True))

    def heal(self) -> None:
        """Resume and start what is not running."""
        for node in sorted(self._paused):
            self.resume(node)
        down = [node for node in NODES if node not in self._running]
        if down:
            self.start(*down)

    def log_tails(self) -> str:
        """The ends of the nodes' logs, for error texts."""
        return "\n".join(f"Node {node}:\n{server.log_tail()}" for node, server in self._running.items())

    def _end(self, nodes: Iterable[int], end: Callable[[KafkaServer], None]) -> None:
        for node in nodes:
            assert self._running[node].ended_with is None, f"node {node} had ended:\n{self._running[node].log_tail()}"
            end(self._running.pop(node))
            self._paused.discard(node)

    def _start(self, node: int) -> None:
        assert self._kafka is not None
        command = [*self._kafka.jvm(JVM_FLAGS), *LOG_LEVELS, "-cp", self._kafka.server_classpath, "kafka.Kafka"]
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            server = KafkaServer(command, self._properties(node), self._data_dir(node), name=f"Apache Kafka (node {node})")
            try:
                server.start()
            except ServerFailed:
                # The system gives the ports of dead servers to clients' connections, for a short time.
                was_taken = "Address already in use" in server.log_text()
                server.kill()
                if attempt == _PORT_ATTEMPTS or not was_taken:
                    raise
            else:
                self._running[node] = server
                return

    # The cluster

    def _data_dir(self, node: int) -> Path:
        return Path(self._folder.name) / str(node)

    def _properties(self, node: int) -> dict[str, object]:
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._controller_ports.items())
        settings = default_properties(self._data_dir(node), self.ports[node], self._controller_ports[node]) | SETTINGS
        del settings["controller.quorum.bootstrap.servers"]
        return settings | {"node.id": node, "broker.rack": RACKS[node], "controller.quorum.voters": voters}

    def _format(self) -> None:
        """Format node 1's directory; the others differ in their ids only. Each run of the tool takes seconds."""
        assert self._kafka is not None
        first = self._data_dir(NODES[0])
        config = Path(self._folder.name) / "format.properties"
        config.write_text(properties_text(self._properties(NODES[0])))
        self._kafka.run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
        for node in NODES[1:]:
            shutil.copytree(first, self._data_dir(node))
            path = self._data_dir(node) / "meta.properties"
            directory_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            text = re.sub(r"node\.id=\d+", f"node.id={node}", path.read_text())
            path.write_text(re.sub(r"directory\.id=.*", f"directory.id={directory_id}", text))

    def __enter__(self) -> "ThreeNodes":
        try:
            self._format()
            self.start(*NODES)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all nodes at once: nothing of their data is needed any more."""
        for server in self._running.values():
            server.kill()
        self._running.clear()
        self._folder.cleanup()


def others(*nodes: int) -> Sequence[int]:
    """The nodes that are not these."""
    return [node for node in NODES if node not in nodes]
