"""Three nodes of Apache Kafka or of Ottla, each a process with broker and controller, with the same settings."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import APACHE
from bench.side_by_side.processes import cpu_seconds, memory_mb
from tests.support.servers.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.support.servers.kafka_server import LOG_LEVELS, SERVER_JVM_FLAGS, free_ports, properties_text
from tests.support.servers.ottla_server import OTTLA as OTTLA_COMMAND
from tests.support.servers.ottla_server import run_ottla

NODES = (1, 2, 3)
LOG_LINES = 15
STOP_S = 300
SETTINGS: dict[str, object] = {
    # Kafka's defaults except for these: a killed broker would keep its id for 9 s, and a test of a controller waits for it.
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 300,
    "group.initial.rebalance.delay.ms": 0,
    # So that no row leaves files to the next.
    "log.segment.delete.delay.ms": 0,
}


class ThreeNodes:
    """A formatted cluster in `folder`. `start` runs all of its nodes; the end of the `with` block ends those that are left."""

    def __init__(self, label: str, kafka: ApacheKafka, folder: Path) -> None:
        self.label = label
        self._folder = folder
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        ports = free_ports(2 * len(NODES))
        self.servers = {node: f"127.0.0.1:{port}" for node, port in zip(NODES, ports, strict=False)}
        controllers = dict(zip(NODES, ports[len(NODES) :], strict=True))
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items())
        self._commands: dict[int, list[str]] = {}
        for node in NODES:
            home = folder / f"node-{node}"
            home.mkdir(parents=True)
            config = home / "server.properties"
            config.write_text(
                properties_text(
                    {
                        "process.roles": "broker,controller",
                        "node.id": node,
                        "listeners": f"PLAINTEXT://{self.servers[node]},CONTROLLER://127.0.0.1:{controllers[node]}",
                        "controller.listener.names": "CONTROLLER",
                        "controller.quorum.voters": voters,
                        "log.dirs": home / "data",
                        "offsets.topic.replication.factor": 1,
                        "transaction.state.log.replication.factor": 1,
                        "transaction.state.log.min.isr": 1,
                        **SETTINGS,
                    }
                )
            )
            self._commands[node] = self._prepared(kafka, config)

    def _prepared(self, kafka: ApacheKafka, config: Path) -> list[str]:
        """Format the directory; returns the command that runs the node."""
        if self.label == APACHE:
            kafka.run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
            flags = [*SERVER_JVM_FLAGS, *LOG_LEVELS]
            return [*kafka.jvm(flags), "-cp", kafka.server_classpath, "kafka.Kafka", str(config)]
        done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", config)
        if done.returncode != 0:
            raise LoadFailed(f"ottla storage format ended with {done.returncode}:\n{done.stderr}")
        return [*OTTLA_COMMAND, "server", "start", str(config)]

    @property
    def bootstrap(self) -> list[str]:
        """The addresses of the nodes that run."""
        return [self.servers[node] for node in self._processes]

    def start(self, nodes: Sequence[int] = NODES) -> None:
        """Start the processes; returns at once."""
        for node in nodes:
            with open(self._folder / f"node-{node}" / "log", "ab") as log:
                self._processes[node] = subprocess.Popen(self._commands[node], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, node: int) -> None:
        """kill -9."""
        process = self._processes.pop(node)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """SIGTERM to all, and wait for their ends: their files are left clean."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(STOP_S)
        self._processes.clear()

    def check(self) -> None:
        """Raise `LoadFailed`, with the end of its log, if a node has ended by itself."""
        for node, process in self._processes.items():
            if process.poll() is not None:
                lines = (self._folder / f"node-{node}" / "log").read_text(errors="replace").splitlines()[-LOG_LINES:]
                raise LoadFailed(
                    "\n".join([f"node {node} of {self.label} ended with {process.returncode}. Its log ends with:", *lines])
                )

    def cpu_seconds(self) -> float:
        """CPU time of all nodes that run, since their start."""
        return sum(cpu_seconds(process.pid) for process in self._processes.values())

    def memory_mb(self) -> float:
        """Resident memory of all nodes."""
        return sum(memory_mb(process.pid) for process in self._processes.values())

    def has_files_of(self, topic: str) -> bool:
        """Whether a node still has a folder of a partition of `topic`, also one renamed `NAME-N.ID-delete`."""
        return any(self._folder.glob(f"node-*/data/{topic}-[0-9]*"))

    def __enter__(self) -> "ThreeNodes":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for node in list(self._processes):
            self.kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)
