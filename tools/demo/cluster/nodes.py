"""The demo's three nodes: processes with a server-N.properties each, as in Kafka's course."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.demo.processes import OTTLA, DemoFailed, Process, free_port

NODES = (1, 2, 3)
FORMAT_WITHIN_S = 60

PROPERTIES = """\
process.roles=broker,controller
node.id={node}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
controller.quorum.voters={voters}
log.dirs={data}
default.replication.factor=3
min.insync.replicas=2
# Kafka's default is 9000: a killed broker keeps its partitions that long.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


class Nodes:
    """Three nodes on free ports. They keep their ports when they are started again."""

    def __init__(self, folder: Path) -> None:
        ports = {node: (free_port(), free_port()) for node in NODES}
        voters = ",".join(f"{node}@127.0.0.1:{controller_port}" for node, (_, controller_port) in ports.items())
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port}" for port, _ in ports.values())
        self._files: dict[int, Path] = {}
        self._processes: dict[int, Process] = {}
        for node, (port, controller_port) in ports.items():
            file = self._files[node] = folder / f"server-{node}.properties"
            data = folder / f"data-{node}"
            file.write_text(
                PROPERTIES.format(node=node, port=port, controller_port=controller_port, voters=voters, data=data),
                encoding="utf-8",
            )
            command = ["server", "start", str(file), "--log-dir", str(folder / f"logs-{node}")]
            self._processes[node] = Process(command, folder / f"node-{node}.log")

    def format(self, cluster_id: str) -> None:
        """Make the directories of all nodes, for one cluster."""
        running = [
            subprocess.Popen(
                [*OTTLA, "storage", "format", "-t", cluster_id, "-c", str(file)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for file in self._files.values()
        ]
        for process in running:
            _, error = process.communicate(timeout=FORMAT_WITHIN_S)
            if process.returncode:
                raise DemoFailed(f"a node's directory could not be formatted: {error.strip()}")

    def start(self, *nodes: int) -> None:
        """Start nodes; they are not waited for."""
        for node in nodes:
            self._processes[node].start()

    def kill(self, node: int) -> None:
        """kill -9."""
        self._processes[node].kill()

    def check(self) -> None:
        """Raise if a node has ended by itself."""
        for process in self._processes.values():
            process.check()

    def end(self) -> None:
        """End all: their data is temporary, so that none needs a clean shutdown."""
        for process in self._processes.values():
            process.kill()
